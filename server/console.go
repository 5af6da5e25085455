package server

// Console is where clients and operators see to connections and to the server itself: CLIENT, CONFIG, DEBUG and their like.
type Console struct {
	recorder *Recorder
	hub      *Hub
	access   *Access
	limits   *Limits
	exec     *Executor
	journal  *Journal
}
