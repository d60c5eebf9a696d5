package process

import "syscall"

// Attributes puts a child into a process group of its own, so that Ctrl-C at a terminal reaches
// this process only, which then stops its children in order; and has the kernel kill the child
// when the thread that started it ends, so that it cannot outlive this process.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
