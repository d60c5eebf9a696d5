package apart

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"

	"github.com/fairlead-dev/fairlead/pkg/bundle/judge"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

// version of the protocol.
const version = 1

// greeting opens the talk, from both sides.
type greeting struct {
	Version int   `json:"version"`
	Memory  int64 `json:"memory,omitempty"`
}

// request asks for one finding. As many files as it says follow, each a value of its own.
type request struct {
	Job judge.Job `json:"job"`
	// Same says that the files are those of the request before.
	Same  bool `json:"same,omitempty"`
	Files int  `json:"files,omitempty"`
	// Size of the files as they are sent, in bytes.
	Size int64 `json:"size,omitempty"`
}

// child is a process as its parent sees it. It works for one goroutine at a time.
type child struct {
	command *exec.Cmd
	in      io.WriteCloser
	to      *json.Encoder
	from    *json.Decoder
	said    head
	// manifest is the id of the files it has.
	manifest string
	used     bool
}

// start starts a process and makes sure that it is one that renders.
func start(command *exec.Cmd, memory int64) (*child, error) {
	c := &child{command: command}
	in, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a process that renders: %w", err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a process that renders: %w", err)
	}
	command.Stderr = &c.said
	// Only the first line of what a process says when it ends is looked at.
	command.Env = append(command.Env, "GOTRACEBACK=none")
	c.in, c.to, c.from = in, json.NewEncoder(in), json.NewDecoder(out)
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start a process that renders: %w", err)
	}
	var answer greeting
	err = c.to.Encode(greeting{Version: version, Memory: memory})
	if err == nil {
		err = c.from.Decode(&answer)
	}
	if err == nil && answer.Version != version {
		err = fmt.Errorf("it speaks version %d of the protocol, want %d", answer.Version, version)
	}
	if err != nil {
		c.end()
		return nil, fmt.Errorf("start a process that renders: %w: %s", err, c.said.text())
	}
	return c, nil
}

// ask gets a finding. After an error the process is of no use.
func (c *child) ask(ctx context.Context, job judge.Job) (found judge.Finding, err error) {
	stop := context.AfterFunc(ctx, func() { _ = c.command.Process.Kill() })
	defer stop()
	files := job.Input.Manifest.Resources
	asked := request{Job: job, Same: c.used && job.Input.ManifestID == c.manifest}
	asked.Job.Input.Manifest = content.Manifest{}
	if asked.Same {
		files = nil
	}
	for _, file := range files {
		asked.Size += int64(len(file.Content))
	}
	asked.Files = len(files)
	c.manifest, c.used = job.Input.ManifestID, true
	err = c.to.Encode(asked)
	for _, file := range files {
		if err == nil {
			err = c.to.Encode(file)
		}
	}
	if err == nil {
		err = c.from.Decode(&found)
	}
	if err == nil && !slices.Contains(judge.Results(), found.Result) {
		err = fmt.Errorf("the answer %q is none", found.Result)
	}
	return found, err
}

// end ends the process. It says whether it had ended before for want of memory.
func (c *child) end() (outOfMemory bool) {
	_ = c.in.Close()
	_ = c.command.Process.Kill()
	_ = c.command.Wait()
	return c.said.has("out of memory", "cannot allocate memory", "failed to create new OS thread", "pthread_create failed", "stack exceeds")
}

// tooMuch is what is found out about a bundle that takes more memory than there is for it. Its cluster would have
// to take it, too, and the agent is one process for all bundles; so it is held back, unless the cluster's own
// values may be what decides.
func tooMuch(job judge.Job, memory int64) judge.Finding {
	helm := job.Input.Options.Helm
	if helm != nil && len(helm.ValuesFrom) > 0 {
		return judge.Finding{Result: judge.MemberDecides}
	}
	return judge.Finding{Result: judge.Failed, Message: fmt.Sprintf(
		"render bundle %s: it cannot be validated: it needs more than %d MiB of memory; look for templates that repeat too much, or set validate: false to send it as it is",
		job.Input.BundleID, memory>>20)}
}

// head keeps the start of what is written.
type head struct{ kept bytes.Buffer }

// Write implements io.Writer.
func (h *head) Write(data []byte) (int, error) {
	const enough = 8 << 10
	h.kept.Write(data[:min(len(data), max(0, enough-h.kept.Len()))])
	return len(data), nil
}

func (h *head) text() string {
	line, _, _ := bytes.Cut(h.kept.Bytes(), []byte("\n"))
	return string(line)
}

func (h *head) has(words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(h.kept.Bytes(), []byte(word)) })
}
