package store

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
)

// Layout of a pack: "PACK", version and count of four bytes each, the objects, and a checksum.
const (
	countOffset  = 8
	headerSize   = 12
	checksumSize = sha1.Size
)

// complete verifies the checksum of a pack and makes a thin one whole: it appends the objects that
// deltas in it are made against and that only read knows, as git's index-pack does. Objects that read
// does not know are in the pack itself, or the pack is broken, which indexing finds.
func complete(pack *os.File, bases []plumbing.Hash, read func(plumbing.Hash) (plumbing.EncodedObject, error)) error {
	end, err := verify(pack)
	if err != nil {
		return err
	}
	var added uint32
	seen := map[plumbing.Hash]bool{}
	for _, base := range bases {
		if seen[base] {
			continue
		}
		seen[base] = true
		object, err := read(base)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("complete pack: %w", err)
		}
		if end, err = appendObject(pack, end, object); err != nil {
			return fmt.Errorf("complete pack: %w", err)
		}
		added++
	}
	if added == 0 {
		return nil
	}
	return seal(pack, end, added)
}

// verify compares a pack with its checksum and returns where its objects end.
func verify(pack *os.File) (int64, error) {
	info, err := pack.Stat()
	if err != nil {
		return 0, fmt.Errorf("check pack: %w", err)
	}
	end := info.Size() - checksumSize
	if end < headerSize {
		return 0, fmt.Errorf("check pack: %w: it has %d bytes", errBroken, info.Size())
	}
	sum, err := checksum(pack, end)
	if err != nil {
		return 0, err
	}
	var said [checksumSize]byte
	if _, err := pack.ReadAt(said[:], end); err != nil {
		return 0, fmt.Errorf("check pack: %w", err)
	}
	if !bytes.Equal(sum, said[:]) {
		return 0, fmt.Errorf("check pack: %w: its checksum is wrong", errBroken)
	}
	return end, nil
}

func checksum(pack io.ReaderAt, end int64) ([]byte, error) {
	digest := sha1.New()
	if _, err := io.Copy(digest, io.NewSectionReader(pack, 0, end)); err != nil {
		return nil, fmt.Errorf("check pack: %w", err)
	}
	return digest.Sum(nil), nil
}

// appendObject writes a whole object at an offset and returns where it ends.
func appendObject(pack *os.File, at int64, object plumbing.EncodedObject) (int64, error) {
	out := io.NewOffsetWriter(pack, at)
	if _, err := out.Write(objectHeader(object.Type(), object.Size())); err != nil {
		return 0, err
	}
	content, err := object.Reader()
	if err != nil {
		return 0, err
	}
	defer func() { _ = content.Close() }()
	deflater := zlib.NewWriter(out)
	_, err = io.Copy(deflater, content)
	if err := errors.Join(err, deflater.Close()); err != nil {
		return 0, err
	}
	written, err := out.Seek(0, io.SeekCurrent)
	return at + written, err
}

// objectHeader is the type and size of an object: four bits of the size beside the type, then seven
// in each byte, the lowest first.
func objectHeader(kind plumbing.ObjectType, size int64) []byte {
	first := byte(kind)<<4 | byte(size&0x0f)
	rest := uint64(size) >> 4
	if rest == 0 {
		return []byte{first}
	}
	return binary.AppendUvarint([]byte{first | 0x80}, rest)
}

// seal writes the new count of objects and the checksum that follows from it.
func seal(pack *os.File, end int64, added uint32) error {
	var count [4]byte
	if _, err := pack.ReadAt(count[:], countOffset); err != nil {
		return fmt.Errorf("complete pack: %w", err)
	}
	binary.BigEndian.PutUint32(count[:], binary.BigEndian.Uint32(count[:])+added)
	if _, err := pack.WriteAt(count[:], countOffset); err != nil {
		return fmt.Errorf("complete pack: %w", err)
	}
	sum, err := checksum(pack, end)
	if err != nil {
		return err
	}
	if _, err := pack.WriteAt(sum, end); err != nil {
		return fmt.Errorf("complete pack: %w", err)
	}
	return nil
}
