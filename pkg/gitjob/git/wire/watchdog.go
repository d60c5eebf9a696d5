package wire

import (
	"context"
	"errors"
	"io"
	"time"
)

// errSilent is the cause of a context that a watchdog ended.
var errSilent = errors.New("the server was silent for too long")

// watchdog ends a context when the server has been silent for a while. It bounds silence instead of
// the whole exchange, so that a large repository on a slow link arrives.
type watchdog struct {
	timer   *time.Timer
	timeout time.Duration
	cancel  context.CancelCauseFunc
}

func watch(ctx context.Context, timeout time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watchdog{
		timer:   time.AfterFunc(timeout, func() { cancel(errSilent) }),
		timeout: timeout,
		cancel:  cancel,
	}
}

func (d *watchdog) stop() {
	d.timer.Stop()
	d.cancel(context.Canceled)
}

// reader passes reads through, and notes each as a sign of life.
func (d *watchdog) reader(r io.Reader) io.Reader { return watchedReader{d, r} }

type watchedReader struct {
	dog *watchdog
	r   io.Reader
}

func (w watchedReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.dog.timer.Reset(w.dog.timeout)
	}
	return n, err
}
