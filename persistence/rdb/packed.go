package rdb

import (
	"headgate/internal/listpack"
	"headgate/internal/number"
)

// packedReader goes through the elements of a packed value.
type packedReader interface {
	More() bool
	Next() (listpack.Element, error)
	Close() error
}

// openPacked opens a listpack or a ziplist, and returns the number of its elements, or 0 if its head does not say it.
func openPacked(blob []byte, isZiplist bool) (packedReader, int, error) {
	if isZiplist {
		z, err := openZiplist(blob)
		return &z, max(z.count, 0), err
	}
	l, err := listpack.Open(blob)
	return &l, max(l.Announced(), 0), err
}

// readPacked reads a value that is one block.
func (r *Reader) readPacked(kind byte) error {
	at := r.in.position()
	blob, err := r.in.blob()
	if err != nil {
		return err
	}
	if kind == typeSetIntset {
		var digits [number.IntMax]byte
		err = eachInIntset(blob, r.sink.Set, func(n int64) error { return r.sink.Member(number.AppendInt(digits[:0], n)) })
		if err == nil {
			err = r.sink.End()
		}
		return r.damaged(err, at)
	}
	isZiplist := kind == typeHashZiplist || kind == typeZSetZiplist || kind == typeListZiplist
	p, n, err := openPacked(blob, isZiplist)
	if err != nil {
		return r.damaged(err, at)
	}
	if !p.More() {
		return r.in.fail("a collection without elements")
	}
	switch kind {
	case typeHashListpack, typeHashZiplist:
		err = r.readPairs(p, r.sink.Hash, n/2, r.sink.Pair)
	case typeZSetListpack, typeZSetZiplist:
		err = r.readPairs(p, r.sink.ZSet, n/2, func(member, text []byte) error {
			score, err := r.parseScore(text)
			if err != nil {
				return err
			}
			return r.scored(member, score)
		})
	case typeSetListpack:
		err = r.readElements(p, r.sink.Set, n, r.sink.Member)
	case typeListZiplist:
		err = r.readElements(p, r.sink.List, n, r.sink.Element)
	}
	if err == nil {
		err = r.sink.End()
	}
	return r.damaged(err, at)
}

// damaged gives the errors of packed values their place.
func (r *Reader) damaged(err error, at int64) error {
	switch err {
	case listpack.ErrInvalid, errZiplist, errIntset:
		return &Error{Offset: at, What: err.Error(), Hint: hintDamaged}
	}
	return err
}

// readElements reads all elements of p, one by one.
func (r *Reader) readElements(p packedReader, begin func(n int) error, n int, tell func([]byte) error) error {
	if err := begin(n); err != nil {
		return err
	}
	if err := eachElement(p, tell); err != nil {
		return err
	}
	return p.Close()
}

func eachElement(p packedReader, tell func([]byte) error) error {
	var digits [number.IntMax]byte
	for p.More() {
		e, err := p.Next()
		if err != nil {
			return err
		}
		if err := tell(e.Bytes(&digits)); err != nil {
			return err
		}
	}
	return nil
}

// readPairs reads all elements of p, two by two.
func (r *Reader) readPairs(p packedReader, begin func(n int) error, n int, tell func(a, b []byte) error) error {
	if err := begin(n); err != nil {
		return err
	}
	var digits [2][number.IntMax]byte
	for p.More() {
		a, err := p.Next()
		if err != nil {
			return err
		}
		b, err := p.Next()
		if err != nil {
			return err
		}
		if err := tell(a.Bytes(&digits[0]), b.Bytes(&digits[1])); err != nil {
			return err
		}
	}
	return p.Close()
}

// readQuicklist reads a list of nodes.
func (r *Reader) readQuicklist(kind byte) error {
	nodes, err := r.in.count()
	if err != nil {
		return err
	}
	if nodes == 0 {
		return r.in.fail("a collection without elements")
	}
	if err := r.sink.List(0); err != nil {
		return err
	}
	for range nodes {
		container := uint64(containerPacked)
		if kind == typeListQuick2 {
			if container, err = r.in.number(); err != nil {
				return err
			}
		}
		at := r.in.position()
		blob, err := r.in.blob()
		if err != nil {
			return err
		}
		switch container {
		case containerPlain:
			err = r.sink.Element(blob)
		case containerPacked:
			err = r.readNode(blob, kind == typeListQuick)
		default:
			return r.in.fail("a kind of list node that does not exist")
		}
		if err != nil {
			return r.damaged(err, at)
		}
	}
	return r.sink.End()
}

// readNode reads a node of a list. Only such nodes may be empty in what Redis loads; an empty list is still refused by the sink's
// count of elements, which is 0.
func (r *Reader) readNode(blob []byte, isZiplist bool) error {
	p, _, err := openPacked(blob, isZiplist)
	if err != nil {
		return err
	}
	if err := eachElement(p, r.sink.Element); err != nil {
		return err
	}
	return p.Close()
}
