package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
)

const (
	// maxAdvertisement bounds a reference listing; a million references take about 80 MiB.
	maxAdvertisement = 128 << 20
	agent            = "agent=git/fairlead"
	zeroID           = "0000000000000000000000000000000000000000"
)

// readAdvertisement reads what a server says of itself before it is asked anything. Only branches
// and tags are kept: hosts add references for every pull request ever made.
func readAdvertisement(lines *lineReader) (*Listing, error) {
	listing := &Listing{Branches: map[string]string{}, Tags: map[string]string{}, annotated: map[string]string{}}
	for {
		line, err := lines.next()
		if err != nil {
			if errors.Is(err, io.EOF) && listing.capabilities != nil {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if line == nil {
			if listing.capabilities == nil {
				listing.capabilities = map[string]bool{}
			}
			return listing, nil
		}
		if err := listing.read(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return nil, err
		}
	}
}

func (l *Listing) read(line []byte) error {
	if message, isError := bytes.CutPrefix(line, []byte("ERR ")); isError {
		return serverError(message)
	}
	if bytes.HasPrefix(line, []byte("version 1")) || bytes.HasPrefix(line, []byte("shallow ")) {
		return nil
	}
	if l.capabilities == nil {
		reference, capabilities, _ := bytes.Cut(line, []byte{0})
		if err := l.readCapabilities(string(capabilities)); err != nil {
			return err
		}
		line = reference
	}
	id, name, found := strings.Cut(string(line), " ")
	if !found || !IsCommitID(id) {
		return protocolError("it listed %q", line)
	}
	if id != zeroID {
		l.add(id, name)
	}
	return nil
}

func (l *Listing) readCapabilities(list string) error {
	l.capabilities = map[string]bool{}
	for capability := range strings.FieldsSeq(list) {
		if format, isFormat := strings.CutPrefix(capability, "object-format="); isFormat && format != "sha1" {
			return errObjectFormat
		}
		l.capabilities[capability] = true
	}
	return nil
}

func (l *Listing) add(id, name string) {
	if branch, isBranch := strings.CutPrefix(name, "refs/heads/"); isBranch {
		l.Branches[branch] = id
	} else if tag, isTag := strings.CutPrefix(name, "refs/tags/"); isTag {
		// The peeled line, the commit behind an annotated tag, follows the tag's own.
		short, isPeeled := strings.CutSuffix(tag, "^{}")
		if isPeeled {
			l.annotated[id] = l.Tags[short]
		}
		l.Tags[short] = id
	}
}

// IsCommitID says whether s is a full commit id: 40 hexadecimal digits in lower case.
func IsCommitID(s string) bool {
	if len(s) != 40 || s != strings.ToLower(s) {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// encode returns the request as a server with these capabilities reads it, and whether the commits
// will come without their parents.
func (l *Listing) encode(request Request) ([]byte, Shallow, error) {
	if !l.capabilities["side-band-64k"] {
		return nil, false, protocolError("it lacks the capability side-band-64k")
	}
	knowsShallow := l.capabilities["shallow"]
	capabilities := l.choose(len(request.Haves) > 0)
	var out []byte
	for i, want := range l.named(request.Wants) {
		if i > 0 {
			capabilities = ""
		}
		out = appendLine(out, "want %s%s\n", want, capabilities)
	}
	cut := Shallow(knowsShallow && !request.Full)
	for _, have := range request.Haves {
		if bool(have.Shallow) && knowsShallow {
			out = appendLine(out, "shallow %s\n", have.ID)
		}
	}
	if cut {
		out = appendLine(out, "deepen 1\n")
	}
	out = appendFlush(out)
	for _, have := range request.Haves {
		if !bool(have.Shallow) || knowsShallow {
			out = appendLine(out, "have %s\n", have.ID)
		}
	}
	return appendLine(out, "done\n"), cut, nil
}

// choose returns the capabilities to use, as they follow the first want. With ofs-delta, a delta that
// names its base by id is one whose base is not in the pack; and without history between two commits,
// servers leave out what they share only in thin packs.
func (l *Listing) choose(isUpdate bool) string {
	wanted := []string{"multi_ack_detailed", "ofs-delta", "no-progress"}
	if isUpdate && l.capabilities["ofs-delta"] {
		wanted = append(wanted, "thin-pack")
	}
	chosen := " side-band-64k " + agent
	for _, capability := range wanted {
		if l.capabilities[capability] {
			chosen += " " + capability
		}
	}
	return chosen
}

// named returns the ids to ask for in order to get the wanted commits. A strict server serves what its
// references name: for a commit that only an annotated tag points to, that is the tag.
func (l *Listing) named(wants []string) []string {
	tips := make(map[string]bool, len(l.Branches))
	for _, id := range l.Branches {
		tips[id] = true
	}
	out := make([]string, len(wants))
	for i, want := range wants {
		out[i] = want
		if tag := l.annotated[want]; tag != "" && !tips[want] {
			out[i] = tag
		}
	}
	return out
}

// readPack reads the answer to a request and copies the pack in it to pack.
func readPack(lines *lineReader, pack io.Writer) error {
	started := false
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) && started {
			// Some servers end without the final flush; the pack has a checksum of its own.
			return nil
		}
		if err != nil {
			return err
		}
		if line == nil && started {
			return nil
		}
		if len(line) == 0 {
			continue
		}
		isPack, err := readBand(line, started, pack)
		if err != nil {
			return err
		}
		started = started || isPack
	}
}

// readBand handles one packet: band 1 is the pack, 2 is talk for people, 3 is an error; before the
// first of them stand acknowledgements and shallow commits.
func readBand(line []byte, started bool, pack io.Writer) (isPack bool, err error) {
	switch line[0] {
	case 1:
		_, err := pack.Write(line[1:])
		if err != nil {
			err = &sinkError{err}
		}
		return true, err
	case 2:
		return false, nil
	case 3:
		return false, serverError(line[1:])
	}
	if message, isError := bytes.CutPrefix(line, []byte("ERR ")); isError {
		return false, serverError(message)
	}
	if !started {
		for _, prefix := range []string{"ACK ", "NAK", "shallow ", "unshallow "} {
			if bytes.HasPrefix(line, []byte(prefix)) {
				return false, nil
			}
		}
	}
	return false, protocolError("it sent %.40q where a pack belongs", line)
}
