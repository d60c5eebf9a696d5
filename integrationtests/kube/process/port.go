package process

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Port is a TCP port on 127.0.0.1 that nobody else gets while it is held. It is bound but
// does not listen, with SO_REUSEPORT, and a child that binds it with SO_REUSEPORT too gets all its
// connections. So a server can go away and come back at the same address: no other process is
// given the port meanwhile, nor can a client that keeps dialling it get it as its own local port
// and end up connected to itself.
type Port struct {
	number int
	socket *os.File
}

// ReservePort reserves a free port.
func ReservePort() (*Port, error) {
	syscall.ForkLock.RLock() // no child may be started before the socket is marked as not for children
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	socket := os.NewFile(uintptr(fd), "reserved port")
	number, err := bindLoopback(fd)
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return &Port{number: number, socket: socket}, nil
}

func bindLoopback(fd int) (int, error) {
	// Not SO_REUSEADDR: with it any server could listen here that has it too, as most have.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	inet, ok := address.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("bound to a %T", address)
	}
	return inet.Port, nil
}

// Number returns the number of the port.
func (p *Port) Number() int { return p.number }

// Release gives the port up.
func (p *Port) Release() error { return p.socket.Close() }
