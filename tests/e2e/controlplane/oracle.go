// The oracle: what Kubernetes itself says on the questions that slicegate
// answers with code of its own, so that the tests can compare the two on as
// many inputs as they like without a cluster.
//
// It reads one JSON object a line and writes one JSON object a line, in the
// same order. Nothing that it reads ends it: an input that it cannot read, or
// that makes Kubernetes' code panic, is answered with an error.

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
	kjson "sigs.k8s.io/json"
)

func init() { programs["oracle"] = runOracle }

// answer is one line of output before it is written.
type answer map[string]any

// question is an operation's own part of a line of input.
type question interface{ answer() (answer, error) }

// questions makes an empty question for each operation that a line can ask for.
var questions = map[string]func() question{
	"quantity":  func() question { return new(quantityQuestion) },
	"demand":    func() question { return new(demandQuestion) },
	"tolerates": func() question { return new(toleratesQuestion) },
	"covers":    func() question { return new(coversQuestion) },
	"nodematch": func() question { return new(nodeMatchQuestion) },
}

func runOracle() {
	// Kubernetes' functions log some inputs that they cannot use; the answer
	// says it already, and a hundred thousand such lines help no one.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := converse(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// converse answers line by line until the input ends. It flushes only when no
// further input is at hand: a batch then costs few system calls, and whoever
// asks a single question still gets the answer at once.
func converse(in io.Reader, out io.Writer) error {
	reader := bufio.NewReaderSize(in, 1<<20)
	writer := bufio.NewWriterSize(out, 1<<20)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, readErr := reader.ReadBytes('\n')
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			return fmt.Errorf("reading a question: %w", readErr)
		}
		if len(line) > 0 {
			if err := encoder.Encode(respond(line)); err != nil {
				return fmt.Errorf("writing an answer: %w", err)
			}
		}
		if reader.Buffered() == 0 || readErr != nil {
			if err := writer.Flush(); err != nil {
				return fmt.Errorf("writing answers: %w", err)
			}
		}
		if readErr != nil {
			return nil
		}
	}
}

// respond answers one line, whatever it holds.
func respond(line []byte) (response answer) {
	var envelope struct {
		Op string          `json:"op"`
		ID json.RawMessage `json:"id"`
	}
	// The id goes back even with an error, since it is what the other side
	// finds its question by.
	defer func() {
		if fault := recover(); fault != nil {
			response = answer{"error": fmt.Sprintf("panic: %v", fault), "panicked": true}
		}
		if envelope.ID != nil {
			response["id"] = envelope.ID
		}
	}()
	if err := json.Unmarshal(line, &envelope); err != nil {
		return answer{"error": fmt.Sprintf("not a JSON object with the field op: %v", err)}
	}
	newQuestion, known := questions[envelope.Op]
	if !known {
		return answer{"error": fmt.Sprintf("unknown op %q", envelope.Op)}
	}
	asked := newQuestion()
	if err := decodeStrictly(line, asked); err != nil {
		return answer{"error": fmt.Sprintf("not a question of op %q: %v", envelope.Op, err)}
	}
	response, err := asked.answer()
	if err != nil {
		response = answer{"error": err.Error()}
		if errors.Is(err, errOutOfReach) {
			// No verdict of Kubernetes: whoever compares must leave this out.
			response["unjudged"] = true
		}
	}
	return response
}

// decodeStrictly reads a question and refuses a field that it does not have:
// a misspelt one would otherwise be an answer to another question than meant.
// Kubernetes objects inside are raw and read by decode.
func decodeStrictly(line []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// decode reads a Kubernetes object the way the API server reads a request's
// body: field names are case sensitive, and unknown ones are ignored.
func decode(raw []byte, what string, into any) error {
	if len(raw) == 0 {
		return fmt.Errorf("the field %s is missing", what)
	}
	if err := withinReach(raw); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// header holds the fields that every question has; respond has read them.
type header struct {
	Op string          `json:"op"`
	ID json.RawMessage `json:"id"`
}
