package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// maxHeld bounds the objects that are in memory because deltas against them are not through, in bytes.
const maxHeld = 256 << 20

// indexer finds out what the objects of a pack are called. Objects that no delta is made against are only
// streamed through, so that a large file takes no memory; go-git's parser unpacks each as a whole.
type indexer struct {
	scanner *packfile.Scanner
	index   *idxfile.Writer
	// deltas by where what they are made against is, or by its name.
	byOffset map[int64][]place
	byName   map[plumbing.Hash][]place
	named    uint32
	held     int64
}

// place is where an object is in its pack.
type place struct {
	offset int64
	crc    uint32
}

// base is an object that deltas may be made against.
type base struct {
	place
	kind    plumbing.ObjectType
	name    plumbing.Hash
	content []byte
}

// objectsOf returns the checksum of a pack and its objects.
func objectsOf(pack *os.File) (checksum plumbing.Hash, index *idxfile.Writer, err error) {
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return checksum, nil, err
	}
	x := &indexer{
		scanner: packfile.NewScanner(pack), index: new(idxfile.Writer),
		byOffset: map[int64][]place{}, byName: map[plumbing.Hash][]place{},
	}
	_, count, err := x.scanner.Header()
	if err == nil {
		err = x.index.OnHeader(count)
	}
	if err != nil {
		return checksum, nil, broken(err)
	}
	bases, err := x.scan(count)
	if err != nil {
		return checksum, nil, broken(err)
	}
	if checksum, err = x.scanner.Checksum(); err != nil && !errors.Is(err, io.EOF) {
		return checksum, nil, broken(err)
	}
	for _, found := range bases {
		if err := x.resolve(found); err != nil {
			return checksum, nil, broken(err)
		}
	}
	if x.named != count {
		return checksum, nil, broken(errors.New("deltas are made against objects that are not there"))
	}
	return checksum, x.index, x.index.OnFooter(checksum)
}

func broken(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fmt.Errorf("%w: %w", errBroken, err)
}

// scan names the objects that are no deltas, and notes the others.
func (x *indexer) scan(count uint32) ([]base, error) {
	var bases []base
	for range count {
		header, err := x.scanner.NextObjectHeader()
		if err != nil {
			return nil, err
		}
		name, content := plumbing.NewHasher(header.Type, header.Length), io.Discard
		if !header.Type.IsDelta() {
			content = name
		}
		_, crc, err := x.scanner.NextObject(content)
		if err != nil {
			return nil, err
		}
		at := place{header.Offset, crc}
		switch header.Type {
		case plumbing.OFSDeltaObject:
			x.byOffset[header.OffsetReference] = append(x.byOffset[header.OffsetReference], at)
		case plumbing.REFDeltaObject:
			x.byName[header.Reference] = append(x.byName[header.Reference], at)
		default:
			found := base{place: at, kind: header.Type, name: name.Sum()}
			x.add(found)
			bases = append(bases, found)
		}
	}
	return bases, nil
}

func (x *indexer) add(found base) {
	x.index.Add(found.name, uint64(found.offset), found.crc)
	x.named++
}

// resolve names the deltas that are made against an object, and those against them.
func (x *indexer) resolve(against base) error {
	for {
		deltas := x.take(against)
		if len(deltas) == 0 {
			return nil
		}
		if against.content == nil {
			var err error
			if against.content, err = x.read(against.offset); err != nil {
				return err
			}
		}
		next, err := x.patchAll(against, deltas)
		if next == nil || err != nil {
			return err
		}
		// The last one is gone on with here: a chain is in memory two links at a time.
		against = *next
	}
}

// patchAll names deltas. It resolves those against them, but for the last that has some.
func (x *indexer) patchAll(against base, deltas []place) (next *base, err error) {
	size := int64(len(against.content))
	if x.held += size; x.held > maxHeld {
		return nil, fault.New(fault.Stalled, ReasonTooLarge, "the repository has large files in too many versions to be unpacked")
	}
	defer func() { x.held -= size }()
	for _, at := range deltas {
		delta, err := x.read(at.offset)
		if err != nil {
			return nil, err
		}
		content, err := packfile.PatchDelta(against.content, delta)
		if err != nil {
			return nil, err
		}
		made := base{place: at, kind: against.kind, name: plumbing.ComputeHash(against.kind, content), content: content}
		x.add(made)
		if len(x.byOffset[made.offset])+len(x.byName[made.name]) == 0 {
			continue
		}
		if next != nil {
			if err := x.resolve(*next); err != nil {
				return nil, err
			}
		}
		next = &made
	}
	return next, nil
}

// take returns the deltas that are made against an object, once.
func (x *indexer) take(against base) []place {
	deltas := append(x.byOffset[against.offset], x.byName[against.name]...)
	delete(x.byOffset, against.offset)
	delete(x.byName, against.name)
	return deltas
}

func (x *indexer) read(offset int64) ([]byte, error) {
	header, err := x.scanner.SeekObjectHeader(offset)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	content.Grow(int(header.Length))
	_, _, err = x.scanner.NextObject(&content)
	return content.Bytes(), err
}
