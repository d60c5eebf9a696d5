package wire

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

const (
	idA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	idB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// lines makes a stream of packets; an empty string is a flush.
func lines(texts ...string) []byte {
	var out []byte
	for _, text := range texts {
		if text == "" {
			out = appendFlush(out)
		} else {
			out = appendLine(out, "%s", text)
		}
	}
	return out
}

func TestReadAdvertisement(t *testing.T) {
	stream := lines(
		idA+" HEAD\x00side-band-64k shallow ofs-delta object-format=sha1\n",
		idA+" refs/heads/a/b\n", idB+" refs/pull/1/head\n", idA+" refs/tags/v1\n", idB+" refs/tags/v1^{}\n", idA+" refs/tags/light\n", "")
	got, err := readAdvertisement(newLineReader(bytes.NewReader(stream), math.MaxInt64))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Branches) != 1 || got.Branches["a/b"] != idA {
		t.Errorf("branches %v", got.Branches)
	}
	if len(got.Tags) != 2 || got.Tags["v1"] != idB || got.Tags["light"] != idA {
		t.Errorf("tags %v", got.Tags)
	}
	if !got.capabilities["shallow"] {
		t.Errorf("capabilities %v", got.capabilities)
	}
}

func TestReadAdvertisementRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		stream []byte
		limit  int64
		want   string
	}{
		"error":      {lines("ERR no such thing"), 1000, "no such thing"},
		"sha256":     {lines(idA+" HEAD\x00object-format=sha256", ""), 1000, "SHA-256"},
		"garbage":    {[]byte("<html></html>"), 1000, "a length belongs"},
		"short":      {[]byte("0003"), 1000, "length 3"},
		"long":       {[]byte("ffff"), 1000, "length 65535"},
		"cut":        {lines(idA + " HEAD\x00x"), 1000, "unexpected EOF"},
		"cut inside": {[]byte("0010abc"), 1000, "unexpected EOF"},
		"empty":      {nil, 1000, "EOF"},
		"too large":  {lines(idA+" HEAD\x00x", idA+" refs/heads/x", ""), 60, "more references"},
		"bad id":     {lines("xyz refs/heads/x\x00", ""), 1000, "it listed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAdvertisement(newLineReader(bytes.NewReader(test.stream), test.limit))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("read %+v, error %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestEncodeAsksForWhatTheServerKnows(t *testing.T) {
	haves := []Commit{{idA, true}, {idB, false}}
	for name, test := range map[string]struct {
		capabilities string
		request      Request
		want         string
		wantShallow  Shallow
		wantError    bool
	}{
		"first": {"side-band-64k shallow ofs-delta thin-pack", Request{Wants: []string{idA}},
			"want " + idA + " side-band-64k agent=git/fairlead ofs-delta\n|deepen 1\n||done\n|", true, false},
		"update": {"side-band-64k shallow ofs-delta thin-pack multi_ack_detailed", Request{Wants: []string{idA}, Haves: haves},
			"want " + idA + " side-band-64k agent=git/fairlead multi_ack_detailed ofs-delta thin-pack\n|shallow " + idA + "\n|deepen 1\n||have " + idA + "\n|have " + idB + "\n|done\n|", true, false},
		"no ofs-delta": {"side-band-64k shallow thin-pack", Request{Wants: []string{idA}, Haves: haves[1:]},
			"want " + idA + " side-band-64k agent=git/fairlead\n|deepen 1\n||have " + idB + "\n|done\n|", true, false},
		"no shallow": {"side-band-64k", Request{Wants: []string{idA}, Haves: haves},
			"want " + idA + " side-band-64k agent=git/fairlead\n||have " + idB + "\n|done\n|", false, false},
		"full": {"side-band-64k shallow", Request{Wants: []string{idA, idB}, Full: true},
			"want " + idA + " side-band-64k agent=git/fairlead\n|want " + idB + "\n||done\n|", false, false},
		"no side band": {"shallow", Request{Wants: []string{idA}}, "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			listing := &Listing{}
			if err := listing.readCapabilities(test.capabilities); err != nil {
				t.Fatal(err)
			}
			body, shallow, err := listing.encode(test.request)
			if test.wantError {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			got, reader := "", newLineReader(bytes.NewReader(body), math.MaxInt64)
			for {
				line, lineErr := reader.next()
				if errors.Is(lineErr, io.EOF) {
					break
				}
				if lineErr != nil {
					t.Fatal(lineErr)
				}
				got += string(line) + "|"
			}
			if err != nil || shallow != test.wantShallow || got != test.want {
				t.Errorf("%v, shallow %v:\n%q, want\n%q", err, shallow, got, test.want)
			}
		})
	}
}

func TestReadPack(t *testing.T) {
	for name, test := range map[string]struct {
		stream    []byte
		want      string
		wantError string
		notServed bool
	}{
		"plain":           {lines("NAK\n", "\x01PA", "\x02talk", "\x01CK", ""), "PACK", "", false},
		"shallow":         {lines("shallow "+idA, "unshallow "+idB, "", "NAK\n", "\x01PACK", ""), "PACK", "", false},
		"acks":            {lines("ACK "+idA+" common\n", "ACK "+idA+" ready\n", "NAK\n", "ACK "+idA+"\n", "\x01PACK", ""), "PACK", "", false},
		"no flush":        {lines("NAK\n", "\x01PACK"), "PACK", "", false},
		"cut":             {lines("NAK\n"), "", "EOF", false},
		"band error":      {lines("NAK\n", "\x01PA", "\x03out of memory"), "PA", "out of memory", false},
		"not our ref":     {lines("ERR upload-pack: not our ref " + idA), "", "not our ref", true},
		"not valid":       {lines("ERR want " + idA + " not valid"), "", "not valid", true},
		"text in between": {lines("NAK\n", "\x01PA", "NAK\n"), "PA", "a pack belongs", false},
		"garbage":         {lines("hello"), "", "a pack belongs", false},
	} {
		t.Run(name, func(t *testing.T) {
			var pack bytes.Buffer
			err := readPack(newLineReader(bytes.NewReader(test.stream), math.MaxInt64), &pack)
			if pack.String() != test.want {
				t.Errorf("pack %q, want %q", pack.String(), test.want)
			}
			if (err == nil) != (test.wantError == "") || err != nil && !strings.Contains(err.Error(), test.wantError) {
				t.Errorf("error %v, want %q", err, test.wantError)
			}
			if errors.Is(err, ErrNotServed) != test.notServed {
				t.Errorf("not served: %v", !test.notServed)
			}
		})
	}
}

func FuzzServerStream(f *testing.F) {
	f.Add(lines(idA+" HEAD\x00side-band-64k", idA+" refs/heads/a", ""), lines("NAK\n", "\x01PACK", ""))
	f.Add(lines("ERR x"), lines("\x03y"))
	f.Add([]byte("0004"), []byte("0005\x01"))
	f.Fuzz(func(t *testing.T, advertisement, answer []byte) {
		listing, err := readAdvertisement(newLineReader(bytes.NewReader(advertisement), 1<<20))
		if err == nil {
			for name, id := range listing.Branches {
				if !IsCommitID(id) || id == zeroID {
					t.Errorf("branch %q is %q", name, id)
				}
			}
		}
		var pack bytes.Buffer
		if err := readPack(newLineReader(bytes.NewReader(answer), 1<<20), &pack); err == nil && pack.Len() > len(answer) {
			t.Error("more came out than went in")
		}
	})
}
