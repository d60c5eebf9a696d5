// Package enroll plays an agent that joins a hub: it makes a token, asks for a registration with what the token gives,
// sends a certificate request and takes the certificate.
//
// It does nothing behind a test's back: each step is a function of its own, and what is sent may be changed before, so
// that a test can play an agent that lies. A step that the API server refuses fails the test.
//
// Start reading with Join.
package enroll
