package limits

// Changed is how many reservations are to be looked at since somebody has changed their keys.
func (b *Reservations) Changed() int { return len(b.changed) }
