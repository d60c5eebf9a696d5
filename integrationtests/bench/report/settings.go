package report

import (
	"fmt"
	"strconv"
	"time"
)

// Environment returns the values of environment variables, "" for one that is not set.
type Environment func(name string) string

// Numbers sets numbers by the variables of their names; what is not set stays.
func (e Environment) Numbers(numbers map[string]*int) error {
	for name, number := range numbers {
		text := e(name)
		if text == "" {
			continue
		}
		value, err := strconv.Atoi(text)
		if err != nil || value < 1 {
			return fmt.Errorf("%s=%q: want a number above zero", name, text)
		}
		*number = value
	}
	return nil
}

// Duration sets a duration by the variable of that name; when that is not set it stays.
func (e Environment) Duration(name string, duration *time.Duration) error {
	text := e(name)
	if text == "" {
		return nil
	}
	value, err := time.ParseDuration(text)
	if err != nil || value <= 0 {
		return fmt.Errorf("%s=%q: want a duration such as 10m", name, text)
	}
	*duration = value
	return nil
}
