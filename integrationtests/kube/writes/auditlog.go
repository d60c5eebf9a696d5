package writes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
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

// ParseAuditLog reads an audit log of JSON lines and returns the writes in it. A
// line that is still being written, or was cut short by the end of its API server, is passed over.
func ParseAuditLog(log io.Reader) ([]Write, error) {
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
