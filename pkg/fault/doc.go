// Package fault names the four classes of error and carries them through wrapping. A controller asks
// for the class of what went wrong, once, and from it follow condition, event and retry:
//
//   - Transient: the world failed; retry with back-off.
//   - Waiting: something named is not there yet; no error, an event wakes the work up.
//   - Stalled: a person must act; the message says what, where and what to do.
//   - Denied: a policy forbids it; the message says which.
//
// An error without a class is transient. Messages must not hold secrets.
package fault
