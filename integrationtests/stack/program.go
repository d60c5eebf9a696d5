package stack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
)

// Program is a running fleet-controller or fleet-agent. Its process can be killed and started again; the
// addresses stay.
type Program struct {
	*process.Process
	// Metrics and Health are host:port.
	Metrics, Health string
}

// Restart kills the program (SIGKILL), starts it again and returns when it says that it is ready.
func (p *Program) Restart(ctx context.Context) error {
	if err := p.Kill(); err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	return p.WaitReady(ctx)
}

// WaitReady waits until the program says that it is ready.
func (p *Program) WaitReady(ctx context.Context) error {
	return p.waitFor(ctx, p.Name()+" is ready", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Health+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz: %s", response.Status)
		}
		return nil
	})
}

// waitFor asks until there is no error, and gives up when the program ends by itself.
func (p *Program) waitFor(ctx context.Context, what string, ask func(context.Context) error) error {
	return Await(ctx, what, func(ctx context.Context) error {
		if err := p.Err(); err != nil {
			return Hopeless(err)
		}
		return ask(ctx)
	})
}

// Hopeless marks an answer after which Await does not ask again, since no better one can come.
func Hopeless(err error) error { return &hopelessError{err} }

type hopelessError struct{ error }

func (e *hopelessError) Unwrap() error { return e.error }

// askEvery is how often Await asks: what it waits for tells nobody when it happens.
const askEvery = 20 * time.Millisecond

// Await asks until there is no error, and returns an error with the last answer when the context ends
// first.
func Await(ctx context.Context, what string, ask func(context.Context) error) error {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	var last error
	for {
		answer := ask(ctx)
		var hopeless *hopelessError
		switch {
		case answer == nil:
			return nil
		case errors.As(answer, &hopeless):
			return fmt.Errorf("wait until %s: %w", what, hopeless.error)
		case last == nil || ctx.Err() == nil: // an answer cut short says nothing
			last = answer
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w; at last: %w", what, ctx.Err(), last)
		case <-ticker.C:
		}
	}
}

// tick is the unit of processor time in /proc, which is the same on all machines Linux runs on.
const tick = 10 * time.Millisecond

// ProcessorTime returns how long the program has computed since its start. Only Linux tells.
func (p *Program) ProcessorTime() (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	if err != nil {
		return 0, fmt.Errorf("read processor time of %s: %w", p.Name(), err)
	}
	used, err := parseStat(string(content))
	if err != nil {
		return 0, fmt.Errorf("read processor time of %s: %w", p.Name(), err)
	}
	return used, nil
}

// parseStat returns the user and system time of a /proc/PID/stat, whose second field is in parentheses and
// may hold anything.
func parseStat(stat string) (time.Duration, error) {
	const user, system = 11, 12 // after the parentheses
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0, fmt.Errorf("%d fields in %q", len(fields), stat)
	}
	var used time.Duration
	for _, field := range fields[user : system+1] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		used += time.Duration(ticks) * tick
	}
	return used, nil
}

// Ports from below those that Linux hands out by itself: a program that is killed finds its own port free
// when it is started again, since no client was given it meanwhile.
const (
	firstPort = 20000
	lastPort  = 32000
)

// givenAddresses are those that FreeAddress has given out. Until its program listens, nobody sees that one is taken.
var givenAddresses sync.Map

// FreeAddress returns a host:port on 127.0.0.1 where nobody listens, which this process was not given before, and which
// no client is given before a program listens there.
func FreeAddress() (string, error) {
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort)))
		if _, given := givenAddresses.LoadOrStore(address, true); given {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		return address, listener.Close()
	}
	return "", errors.New("find a free port: a hundred are taken")
}
