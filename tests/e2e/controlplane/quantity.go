// How Kubernetes reads a quantity: the value that resource.Quantity takes from
// the JSON text that a manifest holds.

package main

import (
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	inf "gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

// quantityQuestion asks for the value of one JSON literal, given as text: with
// its quotes when it is a string.
type quantityQuestion struct {
	header
	JSON string `json:"json"`
}

func (q *quantityQuestion) answer() (answer, error) {
	var quantity resource.Quantity
	if err := decode([]byte(q.JSON), "json", &quantity); err != nil {
		return nil, err
	}
	// Value rounds up and wraps at 64 bits; it is asked for because that is
	// what the scheduler counts with. The copy keeps AsDec from changing what
	// it sees.
	whole := quantity.DeepCopy()
	exact := quantity.AsDec()
	return answer{
		"value":    plain(exact),
		"whole":    isWhole(exact),
		"negative": exact.Sign() < 0,
		"int":      strconv.FormatInt(whole.Value(), 10),
	}, nil
}

// plain writes a decimal without an exponent and without needless zeros, so
// that equal values are equal text.
func plain(value *inf.Dec) string {
	text := value.String()
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if value.Sign() == 0 {
		return "0"
	}
	return text
}

func isWhole(value *inf.Dec) bool {
	if value.Scale() <= 0 {
		return true
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(value.Scale())), nil)
	return new(big.Int).Rem(value.UnscaledBig(), unit).Sign() == 0
}

// maxExponent bounds the powers of ten that the oracle lets through.
const maxExponent = 4096

// exponents finds each whole JSON literal, string or number, that could be a
// quantity with an exponent of at least four digits.
var exponents = regexp.MustCompile(`(?:^|[\s:,\["])[+-]?[0-9.]+[eE]([+-]?[0-9]{4,})(?:$|[\s,}\]"])`)

var errOutOfReach = errors.New("an exponent is too large for the oracle to compute with")

// withinReach refuses JSON with a quantity that Kubernetes would write out
// digit by digit until memory or patience ends, such as 1e-2000000000.
// Kubernetes keeps only the low 32 bits of an exponent, so what is judged is
// the exponent that is left after that; one of more than 64 bits is harmless,
// since Kubernetes makes an error of it.
func withinReach(raw []byte) error {
	for _, match := range exponents.FindAllSubmatch(raw, -1) {
		exponent, err := strconv.ParseInt(string(match[1]), 10, 64)
		if err != nil {
			continue
		}
		if kept := int32(exponent); kept > maxExponent || kept < -maxExponent {
			return errOutOfReach
		}
	}
	return nil
}
