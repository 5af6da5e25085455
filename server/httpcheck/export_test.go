package httpcheck

import "net/http"

// Statuses are those that a check is answered with.
var Statuses = func() []int {
	list := []int{http.StatusOK, http.StatusTooManyRequests, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge}
	seen := map[int]bool{}
	for _, c := range causes {
		if !seen[c.status] {
			seen[c.status] = true
			list = append(list, c.status)
		}
	}
	return list
}()
