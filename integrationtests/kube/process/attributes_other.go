//go:build unix && !linux

package process

import "syscall"

// Attributes puts a child into a process group of its own, so that Ctrl-C at a terminal reaches
// this process only, which then stops its children in order. Only Linux can tie a child's life to
// its parent's; elsewhere a parent killed by SIGKILL leaves its children running.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
