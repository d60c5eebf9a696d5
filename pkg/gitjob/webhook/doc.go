// Package webhook understands the push notifications of GitHub, GitLab, Bitbucket Cloud and Server,
// Gogs and Gitea, and Azure DevOps.
//
// A notification is a hint to look at a repository now. What it claims, the commit above all, is never
// deployed; and nobody is told anything before it was verified with the secret of the GitRepo that is
// to be told. The answer tells a sender without secret nothing about which repositories are known.
//
// Parse and Verify are pure. Start reading at Receiver, the http.Handler that puts them together.
package webhook
