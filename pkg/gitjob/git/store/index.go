package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// errBroken is the error of a pack that does not hold what it says; sent again it may be whole.
var errBroken = fault.New(fault.Transient, ReasonBroken, "the server sent a pack that is not whole")

// writeIndex indexes a pack and returns the name, without extension, under which pack and index
// belong in dir. The index is written first: a pack without one is never seen.
func writeIndex(pack *os.File, dir string) (string, error) {
	checksum, writer, err := objectsOf(pack)
	if err != nil {
		return "", fmt.Errorf("index pack: %w", err)
	}
	index, err := writer.Index()
	if err != nil {
		return "", fmt.Errorf("index pack: %w", err)
	}
	name := filepath.Join(dir, "pack-"+checksum.String())
	file, err := os.OpenFile(name+".idx", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return "", fmt.Errorf("write index of pack: %w", err)
	}
	_, err = idxfile.NewEncoder(file).Encode(index)
	if err := errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("write index of pack: %w", err), os.Remove(file.Name()))
	}
	return name, nil
}

// checkObjects reads a pack without keeping anything, and refuses objects that would not fit into
// memory: indexing unpacks each of them as a whole, whatever its sender says of its size. It returns
// the ids of the objects that deltas are made against by name.
func checkObjects(pack *os.File, maxObject int64) ([]plumbing.Hash, error) {
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("check pack: %w", err)
	}
	scanner := packfile.NewScanner(pack)
	_, count, err := scanner.Header()
	if err != nil {
		return nil, fmt.Errorf("check pack: %w: %w", errBroken, err)
	}
	var bases []plumbing.Hash
	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return nil, fmt.Errorf("check pack: %w: %w", errBroken, err)
		}
		if header.Type == plumbing.REFDeltaObject {
			bases = append(bases, header.Reference)
		}
		content := &objectChecker{left: header.Length}
		if header.Length <= maxObject {
			_, _, err = scanner.NextObject(content)
		}
		size := header.Length
		if header.Type.IsDelta() {
			size = max(size, content.targetSize())
		}
		switch {
		case size < 0 || size > maxObject:
			return nil, fault.New(fault.Stalled, ReasonTooLarge, "the repository has a file larger than the limit of %d MiB", maxObject>>20)
		case err != nil:
			return nil, fmt.Errorf("check pack: %w: %w", errBroken, err)
		}
	}
	return bases, nil
}

// objectChecker takes the unpacked content of an object: no more than its header says, and its first
// bytes, where a delta has the size of what it makes.
type objectChecker struct {
	left int64
	head []byte
}

func (c *objectChecker) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		return 0, errors.New("an object is larger than its header says")
	}
	if room := 2*binary.MaxVarintLen64 - len(c.head); room > 0 {
		c.head = append(c.head, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// targetSize reads the second of the two sizes at the start of a delta; -1 when there is none.
func (c *objectChecker) targetSize() int64 {
	_, n := binary.Uvarint(c.head)
	if n <= 0 {
		return -1
	}
	size, n := binary.Uvarint(c.head[n:])
	if n <= 0 || size > 1<<62 {
		return -1
	}
	return int64(size)
}
