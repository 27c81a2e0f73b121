// One program with several names: each program of a Kubernetes control plane,
// kubectl, and the oracle that the tests ask what Kubernetes itself would say.
//
// They share nearly all of their code, so one link instead of six saves
// minutes of building and a gigabyte of disk. The name that the program is
// called by, which is that of a symbolic link to it, says what it is.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// programs maps each name to what runs under it. The files of this package add
// theirs in init, so that a build without some of them simply has fewer names.
var programs = map[string]func(){}

func main() {
	name := filepath.Base(os.Args[0])
	if os.Getenv("EXIT_WITH_STDIN") == "1" {
		go exitWithStdin()
	}
	run, known := programs[name]
	if !known {
		names := make([]string, 0, len(programs))
		for name := range programs {
			names = append(names, name)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "%q names no program: call this file by a link with one of the names %s\n",
			name, strings.Join(names, ", "))
		os.Exit(2)
	}
	run()
}

// exitWithStdin ends the program when its standard input ends. A test holds the
// other end and never writes to it, so nothing that a test starts outlives it,
// even when the test is killed and cannot clean up.
func exitWithStdin() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}
