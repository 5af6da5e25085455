package httpcheck

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"headgate/server/limiter"
	"headgate/server/local"
)

// problem is why a check has no answer, in the form of RFC 9457.
type problem struct {
	Type   string `json:"type,omitempty"` // absent: about:blank, so the status says it all
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// Error implements error.
func (p *problem) Error() string { return p.Detail }

// send answers with the problem.
func (p *problem) send(w http.ResponseWriter) {
	body, _ := json.Marshal(p) // texts and a number
	setType(w, "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a peer that has gone wants nothing
}

// causes are the statuses of errors by how they begin. What is not listed is the caller's mistake if it begins with ERR, or else a reason why
// the server cannot answer now.
var causes = []struct {
	begins string
	status int
	title  string
}{
	{"ERR no such policy", http.StatusNotFound, "Unknown policy"},
	{"ERR max number of clients", http.StatusServiceUnavailable, "Unavailable"},
	{string(limiter.ErrForeign), http.StatusConflict, "The key holds something else"},
	{"ERR", http.StatusBadRequest, "Bad request"},
	{"WRONGTYPE", http.StatusConflict, "The key holds something else"},
	{"CROSSSLOT", http.StatusBadRequest, "Bad request"},
	{"NOAUTH", http.StatusUnauthorized, "Authentication required"},
	{"WRONGPASS", http.StatusUnauthorized, "Wrong user or password"},
	{"NOPERM", http.StatusForbidden, "Not permitted"},
	{"DENIED", http.StatusForbidden, "Not permitted"},
}

// problemOf is the problem that an error stands for.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	var refusal local.Error
	if errors.As(err, &refusal) {
		for _, c := range causes {
			if strings.HasPrefix(string(refusal), c.begins) {
				return &problem{Title: c.title, Status: c.status, Detail: string(refusal)}
			}
		}
	}
	return unavailable(err.Error())
}

// unavailable is the problem that there is no answer now.
func unavailable(detail string) *problem {
	return &problem{Title: "Unavailable", Status: http.StatusServiceUnavailable, Detail: detail}
}
