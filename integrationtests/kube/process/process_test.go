package process

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// holdChild makes the test binary a program that starts a child and waits: the parent that
// TestChildDiesWithParent kills.
var holdChild = flag.Bool("hold-child", false, "start a child, print its process id and wait")

func TestMain(m *testing.M) {
	flag.Parse()
	if *holdChild {
		hold()
	}
	os.Exit(m.Run())
}

func hold() {
	dir, err := os.MkdirTemp("", "hold-child-")
	if err != nil {
		panic(err)
	}
	child, err := NewParent().Start(Command{Name: "sleep", Path: "/bin/sh", Args: []string{"-c", "exec sleep 3600"}, Dir: dir, Log: filepath.Join(dir, "log")})
	if err != nil {
		panic(err)
	}
	fmt.Println(child.Pid())
	os.RemoveAll(dir)
	select {}
}

func TestChildDiesWithParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child's life to its parent's")
	}
	parent := exec.Command(os.Args[0], "-hold-child")
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if !alive(pid) {
		t.Fatalf("child %d does not run", pid)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // says that it was killed
	eventually(t, "the child is gone", func() bool { return !alive(pid) })
}

func TestKillAndStartAgain(t *testing.T) {
	parent := NewParent()
	defer parent.Close()
	p := startShell(t, parent, "echo run; exec sleep 3600")
	first := p.Pid()
	eventually(t, "it has written its log", func() bool { return logOf(t, p) == "run\n" })
	if err := p.Start(); err == nil {
		t.Error("started twice at the same time")
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if p.Running() || alive(first) {
		t.Error("runs after Kill")
	}
	if err := p.Err(); err != nil {
		t.Errorf("being killed is no failure, got %v", err)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("second Kill: %v", err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if p.Pid() == first || !p.Running() {
		t.Error("does not run again")
	}
	eventually(t, "the log holds both runs", func() bool { return logOf(t, p) == "run\nrun\n" })
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}

func TestTerminate(t *testing.T) {
	tests := map[string]struct {
		script  string
		context func() (context.Context, context.CancelFunc)
		wantLog string
	}{
		"gives the program time": {
			script:  "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done",
			context: func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) },
			wantLog: "ready\nbye\n",
		},
		"kills one that does not listen": {
			script: "trap '' TERM; echo ready; while :; do sleep 0.01; done",
			context: func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), 50*time.Millisecond)
			},
			wantLog: "ready\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parent := NewParent()
			defer parent.Close()
			p := startShell(t, parent, test.script)
			eventually(t, "it is ready", func() bool { return logOf(t, p) == "ready\n" })
			ctx, cancel := test.context()
			defer cancel()
			if err := p.Terminate(ctx); err != nil {
				t.Fatal(err)
			}
			if p.Running() {
				t.Error("runs after Terminate")
			}
			if got := logOf(t, p); got != test.wantLog {
				t.Errorf("log %q, want %q", got, test.wantLog)
			}
			if err := p.Err(); err != nil {
				t.Errorf("ending when asked is no failure, got %v", err)
			}
		})
	}
}

func TestEndingByItselfIsAFailure(t *testing.T) {
	parent := NewParent()
	defer parent.Close()
	p := startShell(t, parent, "exit 3")
	eventually(t, "it has ended", func() bool { return !p.Running() })
	err := p.Err()
	if err == nil {
		t.Fatal("no failure")
	}
	for _, part := range []string{"sh", "exit status 3", p.Log()} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

func TestEnvironmentIsNotHandedDown(t *testing.T) {
	t.Setenv("KUBECONFIG", "/elsewhere")
	parent := NewParent()
	defer parent.Close()
	p := startShell(t, parent, `echo "$KUBECONFIG|$HOME|$EXTRA"; exec sleep 3600`)
	eventually(t, "it has written its log", func() bool { return logOf(t, p) != "" })
	want := fmt.Sprintf("|%s|1\n", filepath.Dir(p.Log()))
	if got := logOf(t, p); got != want {
		t.Errorf("environment %q, want %q", got, want)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}

func TestMissingProgram(t *testing.T) {
	parent := NewParent()
	defer parent.Close()
	_, err := parent.Start(Command{Name: "nothing", Path: filepath.Join(t.TempDir(), "nothing"), Dir: t.TempDir(), Log: filepath.Join(t.TempDir(), "log")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
}

func TestPortIsKeptForWhoeverSharesIt(t *testing.T) {
	port, err := ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port.Number())
	if l, err := net.Listen("tcp", address); err == nil {
		l.Close()
		t.Error("a stranger could listen on a reserved port")
	}
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("a reserved port without a server took a connection")
	}
	for range 2 { // a server that goes away and comes back
		listener, err := (&net.ListenConfig{Control: sharePort}).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatalf("the server could not listen: %v", err)
		}
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("the server cannot be reached: %v", err)
		}
		accepted, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepted.Close()
		connection.Close()
		listener.Close()
	}
	if err := port.Release(); err != nil {
		t.Fatal(err)
	}
	other, err := ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Release()
}

func sharePort(_, _ string, conn syscall.RawConn) error {
	var failure error
	err := conn.Control(func(fd uintptr) {
		failure = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, failure)
}

func startShell(t *testing.T, parent *Parent, script string) *Process {
	t.Helper()
	dir := t.TempDir()
	p, err := parent.Start(Command{
		Name: "sh", Path: "/bin/sh", Args: []string{"-c", script},
		Dir: dir, Log: filepath.Join(dir, "log"), Env: []string{"EXTRA=1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func logOf(t *testing.T, p *Process) string {
	t.Helper()
	content, err := os.ReadFile(p.Log())
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !ask() {
		select {
		case <-ctx.Done():
			t.Fatalf("gave up waiting until %s", what)
		case <-ticker.C:
		}
	}
}

// alive reports whether a process runs: one that has ended but was not yet waited for does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(string(state), "Z")
}
