package kube

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Write is one answered request that asked for a change, with who asked and about which object.
type Write struct {
	Request
	// User asked, or was impersonated.
	User string
	// UserAgent is how the asking program calls itself.
	UserAgent string
	// Namespace and Name of the object; Name is empty where the API server chose it.
	Namespace, Name string
	// Time at which the request came in.
	Time time.Time
}

// String returns the write as "system:fleet:a:b: patch fleet.cattle.io/bundles/status 200 ns/name".
func (w Write) String() string {
	return fmt.Sprintf("%s: %s %s/%s", w.User, w.Request, w.Namespace, w.Name)
}

// auditEvent is the part of an audit.k8s.io/v1 Event that is used here.
type auditEvent struct {
	Verb             string     `json:"verb"`
	RequestURI       string     `json:"requestURI"`
	UserAgent        string     `json:"userAgent"`
	User             auditUser  `json:"user"`
	ImpersonatedUser *auditUser `json:"impersonatedUser"`
	ObjectRef        *struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
}

type auditUser struct {
	Username string `json:"username"`
}

// Writes returns all writes since the cluster was started, in the order of their answers, dry runs
// left out, those of an API server that was killed included. Where MutatingRequests counts, this
// says who wrote what. An apply is a patch here, and an answer may be entered just after it was given.
func (c *Cluster) Writes() ([]Write, error) {
	file, err := os.Open(filepath.Join(c.options.Dir, auditLogFile))
	if err != nil {
		return nil, fmt.Errorf("read audit log of %s: %w", c.options.Name, err)
	}
	defer file.Close()
	writes, err := parseAuditLog(file)
	if err != nil {
		return nil, fmt.Errorf("read audit log of %s: %w", c.options.Name, err)
	}
	return writes, nil
}

// parseAuditLog reads whole lines; one that is still being written, or was cut short by the end of
// its API server, is passed over.
func parseAuditLog(log io.Reader) ([]Write, error) {
	var writes []Write
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return writes, nil
		}
		if err != nil {
			return nil, err
		}
		var event auditEvent
		if json.Unmarshal(bytes.TrimSpace(line), &event) != nil || event.ObjectRef == nil {
			continue
		}
		if uri, err := url.Parse(event.RequestURI); err == nil && uri.Query().Has("dryRun") {
			continue
		}
		writes = append(writes, event.write())
	}
}

func (e *auditEvent) write() Write {
	user := e.User.Username
	if e.ImpersonatedUser != nil {
		user = e.ImpersonatedUser.Username
	}
	return Write{
		Request: Request{
			Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource,
			Subresource: e.ObjectRef.Subresource, Code: e.ResponseStatus.Code,
		},
		User:      user,
		UserAgent: e.UserAgent,
		Namespace: e.ObjectRef.Namespace,
		Name:      e.ObjectRef.Name,
		Time:      e.RequestReceivedTimestamp,
	}
}
