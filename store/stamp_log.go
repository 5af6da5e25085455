package store

import "slices"

// logPageMax is the most blocks that a page holds.
const logPageMax = 128

// stampLog is an ordered set of stamps with ranks: blocks of stamps in pages of blocks. Whatever changes, changes in one block, one
// page and the list of pages, of which a million stamps fill some sixteen. Removing a range drops whole pages and blocks in it
// unread, so that it hardly matters how much of a window has expired.
//
// A clone shares pages and blocks; each log knows by their owner which are its own, and copies the others when it has to change
// them. Nothing is ever written to what is shared, so a clone may be read while the original changes.
type stampLog struct {
	owner *logOwner
	pages []logPage
	count int
}

// logOwner is an identity: only the pointer means something. It has a size because pointers to nothing may be equal.
type logOwner struct{ _ byte }

// logPage is a run of blocks, none of them empty.
type logPage struct {
	owner  *logOwner
	blocks []logBlock
	count  int
}

// logPlace is where a stamp is, or would be: within a block, or just after its last one.
type logPlace struct{ page, block, i int }

func newStampLog() stampLog { return stampLog{owner: new(logOwner)} }

func (l *stampLog) len() int { return l.count }

// clone returns a copy. What it takes grows with the number of pages; blocks are copied when they are changed.
func (l *stampLog) clone() stampLog {
	l.owner = new(logOwner)
	return stampLog{owner: new(logOwner), pages: slices.Clone(l.pages), count: l.count}
}

// seek finds the end of the stamps for which before holds, which are the first so many. The place lies in the block of the last
// of them, where there is one.
func (l *stampLog) seek(before func(stamp) bool) logPlace {
	var at logPlace
	at.page = max(0, cut(len(l.pages), func(i int) bool { return before(l.pages[i].blocks[0].first) })-1)
	if at.page == len(l.pages) {
		return at
	}
	page := &l.pages[at.page]
	at.block = max(0, cut(len(page.blocks), func(i int) bool { return before(page.blocks[i].first) })-1)
	block := &page.blocks[at.block]
	at.i = cut(block.len(), func(i int) bool { return before(block.at(i)) })
	return at
}

// cut counts the first of n things for which before holds. The last is tried first: most of what a window does is there.
func cut(n int, before func(i int) bool) int {
	if n == 0 || before(n-1) {
		return n
	}
	low, high := 0, n-1
	for low < high {
		if middle := int(uint(low+high) / 2); before(middle) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// find returns the place where a stamp is or belongs.
func (l *stampLog) find(s stamp) (at logPlace, held bool) {
	at = l.seek(func(o stamp) bool { return o.compare(s) < 0 })
	next := l.settle(at)
	return at, l.has(next) && l.at(next) == s
}

// has says whether the place is that of a stamp.
func (l *stampLog) has(at logPlace) bool {
	return at.page < len(l.pages)
}

// settle turns a place after the last stamp of a block into that of the next block's first.
func (l *stampLog) settle(at logPlace) logPlace {
	if !l.has(at) || at.i < l.pages[at.page].blocks[at.block].len() {
		return at
	}
	return l.nextBlock(at)
}

// nextBlock is the place of the first stamp after a place's block.
func (l *stampLog) nextBlock(at logPlace) logPlace {
	if at.block+1 < len(l.pages[at.page].blocks) {
		return logPlace{at.page, at.block + 1, 0}
	}
	return logPlace{at.page + 1, 0, 0}
}

// at returns the stamp at a place.
func (l *stampLog) at(p logPlace) stamp { return l.pages[p.page].blocks[p.block].at(p.i) }

// rank counts the stamps before a place.
func (l *stampLog) rank(at logPlace) int {
	if !l.has(at) {
		return l.count
	}
	rank := at.i
	for i := range at.page {
		rank += l.pages[i].count
	}
	blocks := l.pages[at.page].blocks
	for i := range at.block {
		rank += blocks[i].len()
	}
	return rank
}

// place finds the stamp of a rank in [0, len), or the place after the last one.
func (l *stampLog) place(rank int) logPlace {
	var at logPlace
	if rank == l.count {
		return logPlace{page: len(l.pages)}
	}
	for ; rank >= l.pages[at.page].count; at.page++ {
		rank -= l.pages[at.page].count
	}
	for blocks := l.pages[at.page].blocks; rank >= blocks[at.block].len(); at.block++ {
		rank -= blocks[at.block].len()
	}
	at.i = rank
	return at
}

// before counts the stamps up to a bound.
func (l *stampLog) before(bound *zsetBound) int {
	return l.rank(l.seek(func(s stamp) bool { return s.isBefore(bound) }))
}

// next is the place after that of a stamp.
func (l *stampLog) next(at logPlace) logPlace {
	at.i++
	return l.settle(at)
}

// prev is the place of the stamp before a place that is not the first.
func (l *stampLog) prev(at logPlace) logPlace {
	switch {
	case at.i > 0:
		at.i--
		return at
	case at.block > 0:
		at.block--
	default:
		at.page--
		at.block = len(l.pages[at.page].blocks) - 1
	}
	at.i = l.pages[at.page].blocks[at.block].len() - 1
	return at
}

// own returns a page that may be changed.
func (l *stampLog) own(page int) *logPage {
	p := &l.pages[page]
	if p.owner != l.owner {
		blocks := make([]logBlock, len(p.blocks), cap(p.blocks))
		copy(blocks, p.blocks)
		p.blocks, p.owner = blocks, l.owner
	}
	return p
}

// ownBlock returns a page and a block of it that may be changed.
func (l *stampLog) ownBlock(page, block int) (*logPage, *logBlock) {
	p := l.own(page)
	b := &p.blocks[block]
	if b.owner != l.owner {
		b.copyData(l.owner)
	}
	return p, b
}

// firstBlockRoom is how many stamps a log's first block has room for at first.
const firstBlockRoom = 16

// insert adds a stamp at the place that find has returned for it.
func (l *stampLog) insert(at logPlace, s stamp) {
	if l.count == 0 {
		l.pages = []logPage{{owner: l.owner, blocks: []logBlock{newLogBlock(l.owner, s, firstBlockRoom, 1, bytesFor(uint64(s.suffix)))}}}
	}
	if l.pages[at.page].blocks[at.block].len() == logBlockMax {
		at = l.room(at)
	}
	page, block := l.ownBlock(at.page, at.block)
	block.insert(at.i, s)
	page.count++
	l.count++
}

// last is the stamp of the highest rank, in a log that is not empty.
func (l *stampLog) last() stamp { return l.at(l.prev(logPlace{page: len(l.pages)})) }

// push adds a stamp behind the last one.
func (l *stampLog) push(s stamp) {
	var at logPlace
	if l.count > 0 {
		at = l.prev(logPlace{page: len(l.pages)})
		at.i++
	}
	l.insert(at, s)
}

// room finds room for a stamp whose place is in a full block: in front of the next block, or by a split.
func (l *stampLog) room(at logPlace) logPlace {
	if at.i == logBlockMax {
		if next := l.nextBlock(at); l.has(next) && l.pages[next.page].blocks[next.block].len() < logBlockMax {
			return next
		}
	}
	return l.split(at)
}

// split makes room at a place in a full block and returns the place. Behind the log's last stamp and before its first one a new
// block begins. Near the end of the last block only what lies behind the place moves over, because what comes next will come
// there too.
func (l *stampLog) split(at logPlace) logPlace {
	if len(l.pages[at.page].blocks) == logPageMax {
		at = l.splitPage(at)
	}
	last := at.page == len(l.pages)-1 && at.block == len(l.pages[at.page].blocks)-1
	if at == (logPlace{}) {
		page := l.own(0)
		first := &page.blocks[0]
		page.blocks = slices.Insert(page.blocks, 0, newLogBlock(l.owner, first.first, logBlockMax, first.scoreBytes, first.suffixBytes))
		return at
	}
	page, block := l.ownBlock(at.page, at.block)
	from := logBlockMax / 2
	if last {
		from = max(from, at.i)
	}
	var next logBlock
	if from < block.len() {
		next = block.tail(l.owner, from)
		block.cut(from, block.len()-from)
	} else {
		end := block.at(block.len() - 1)
		next = newLogBlock(l.owner, end, logBlockMax, bytesFor(uint64(end.score-block.first.score)), bytesFor(uint64(end.suffix)))
	}
	page.blocks = slices.Insert(page.blocks, at.block+1, next)
	if at.i > from || next.len() == 0 {
		return logPlace{at.page, at.block + 1, at.i - from}
	}
	return at
}

// splitPage makes room for a block in a full page and returns where the place is then. Near the log's first and last blocks the
// others stay together.
func (l *stampLog) splitPage(at logPlace) logPlace {
	from := logPageMax / 2
	switch {
	case at.page == 0 && at.block == 0:
		from = 1
	case at.page == len(l.pages)-1 && at.block == logPageMax-1:
		from = logPageMax - 1
	}
	page := l.own(at.page)
	next := logPage{owner: l.owner, blocks: make([]logBlock, logPageMax-from, logPageMax)}
	copy(next.blocks, page.blocks[from:])
	for i := range next.blocks {
		next.count += next.blocks[i].len()
	}
	clear(page.blocks[from:])
	page.blocks = page.blocks[:from]
	page.count -= next.count
	l.pages = slices.Insert(l.pages, at.page+1, next)
	if at.block >= from {
		return logPlace{at.page + 1, at.block - from, at.i}
	}
	return at
}

// remove takes out n stamps from rank on. Whole pages and blocks go unread.
func (l *stampLog) remove(rank, n int) {
	for n > 0 {
		at, gone := l.place(rank), 0
		page := &l.pages[at.page]
		switch {
		case at.block == 0 && at.i == 0 && page.count <= n:
			end := at.page
			for end < len(l.pages) && gone+l.pages[end].count <= n {
				gone += l.pages[end].count
				end++
			}
			l.pages = slices.Delete(l.pages, at.page, end)
		case at.i == 0 && page.blocks[at.block].len() <= n:
			end := at.block
			for end < len(page.blocks) && gone+page.blocks[end].len() <= n {
				gone += page.blocks[end].len()
				end++
			}
			page = l.own(at.page)
			page.blocks = slices.Delete(page.blocks, at.block, end)
			page.count -= gone
		default:
			page, block := l.ownBlock(at.page, at.block)
			gone = min(n, block.len()-at.i)
			block.cut(at.i, gone)
			page.count -= gone
		}
		l.count -= gone
		n -= gone
	}
	l.tidy(rank)
}

// tidy joins blocks and pages around a rank where something has been removed, so that neighbours are more than half full
// together.
func (l *stampLog) tidy(rank int) {
	if l.count == 0 {
		l.pages = nil
		return
	}
	at := l.place(min(rank, l.count-1))
	l.joinBlocks(at.page, at.block)
	l.joinBlocks(at.page, at.block-1)
	l.joinPages(at.page)
	l.joinPages(at.page - 1)
}

// joinBlocks makes one block of a page's block i and the one behind it, if both are there and fill no more than half of one.
func (l *stampLog) joinBlocks(page, i int) {
	blocks := l.pages[page].blocks
	if i < 0 || i+1 >= len(blocks) || blocks[i].len()+blocks[i+1].len() > logBlockMax/2 {
		return
	}
	p, block := l.ownBlock(page, i)
	block.join(&p.blocks[i+1], 0)
	p.blocks = slices.Delete(p.blocks, i+1, i+2)
}

// joinPages does the same for page i and the one behind it.
func (l *stampLog) joinPages(i int) {
	if i < 0 || i+1 >= len(l.pages) || len(l.pages[i].blocks)+len(l.pages[i+1].blocks) > logPageMax/2 {
		return
	}
	page := l.own(i)
	page.blocks = append(page.blocks, l.pages[i+1].blocks...)
	page.count += l.pages[i+1].count
	l.pages = slices.Delete(l.pages, i+1, i+2)
}
