package main

import (
	"log/slog"
	"os"

	"github.com/go-logr/logr"
)

// newLogger writes JSON lines to standard error.
func newLogger(debug bool, level int) logr.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if debug {
		options.Level = slog.Level(-max(level, 1))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, options))
}
