// Package scripting has the server as scripts see it, and the commands that run them. Package script is the engine.
//
// Past busy-reply-threshold a script lets the loop serve other connections once per slice: commands that were parsed
// but not run are rewound first, the script's own connection is left alone, and all but a few commands are answered
// BUSY. Background work must not change keys meanwhile.
package scripting
