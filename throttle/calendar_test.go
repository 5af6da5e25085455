package throttle

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
)

func TestCalendarEnd(t *testing.T) {
	tests := []struct {
		name, zone, now string
		unit            Calendar
		want            string
	}{
		{"a minute", "UTC", "2026-11-21T13:45:10.5Z", Minute, "2026-11-21T13:46:00Z"},
		{"the last minute of an hour", "UTC", "2026-11-21T13:59:59.999Z", Minute, "2026-11-21T14:00:00Z"},
		{"the minute before clocks are set back", "America/New_York", "2026-11-01T05:59:30Z", Minute, "2026-11-01T06:00:00Z"},
		{"the minute before clocks are set forward", "America/New_York", "2026-03-08T06:59:30Z", Minute, "2026-03-08T07:00:00Z"},
		{"an hour", "UTC", "2026-11-21T13:45:10.5Z", Hour, "2026-11-21T14:00:00Z"},
		{"exactly at a boundary the next one", "UTC", "2026-11-21T14:00:00Z", Hour, "2026-11-21T15:00:00Z"},
		{"a millisecond before", "UTC", "2026-11-21T23:59:59.999Z", Day, "2026-11-22T00:00:00Z"},
		{"Saturday's week ends on Sunday", "UTC", "2026-11-21T12:00:00Z", Week, "2026-11-23T00:00:00Z"},
		{"Sunday is the last day of its week", "UTC", "2026-11-22T23:00:00Z", Week, "2026-11-23T00:00:00Z"},
		{"Monday is the first", "UTC", "2026-11-23T00:00:00Z", Week, "2026-11-30T00:00:00Z"},
		{"a leap year's February", "UTC", "2028-02-10T00:00:00Z", Month, "2028-03-01T00:00:00Z"},
		{"December", "UTC", "2026-12-31T23:00:00Z", Month, "2027-01-01T00:00:00Z"},
		{"a year", "UTC", "2026-01-01T00:00:00Z", Year, "2027-01-01T00:00:00Z"},
		{"a day in Tokyo", "Asia/Tokyo", "2026-11-21T14:59:59Z", Day, "2026-11-21T15:00:00Z"},
		{"an hour where offsets have quarters", "Asia/Kathmandu", "2026-11-21T14:10:00Z", Hour, "2026-11-21T14:15:00Z"},
		{"a day of 23 hours", "Europe/Berlin", "2026-03-28T23:00:00Z", Day, "2026-03-29T22:00:00Z"},
		{"a day of 25 hours", "Europe/Berlin", "2026-10-24T22:00:00Z", Day, "2026-10-25T23:00:00Z"},
		{"the hour that clocks show twice", "America/New_York", "2026-11-01T05:30:00Z", Hour, "2026-11-01T07:00:00Z"},
		{"the hour before the one that clocks leave out", "America/New_York", "2026-03-08T06:30:00Z", Hour, "2026-03-08T07:00:00Z"},
		{"no midnight: the day begins at one", "America/Sao_Paulo", "2018-11-03T12:00:00Z", Day, "2018-11-04T03:00:00Z"},
		{"midnight twice: the first one", "America/Havana", "2026-10-31T12:00:00Z", Day, "2026-11-01T04:00:00Z"},
		{"a day that an island left out", "Pacific/Apia", "2011-12-30T09:00:00Z", Day, "2011-12-30T10:00:00Z"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			zone, err := time.LoadLocation(test.zone)
			require.NoError(t, err)
			now, err := time.Parse(time.RFC3339Nano, test.now)
			require.NoError(t, err)
			got := time.UnixMilli(test.unit.End(now.UnixMilli(), zone)).UTC().Format(time.RFC3339Nano)
			require.Equal(t, test.want, got)
		})
	}
}

// TestCalendarEndByWalking looks at the clock of the zone minute by minute until it shows what the next unit begins with, or later.
func TestCalendarEndByWalking(t *testing.T) {
	draw := newRand(t)
	zones := []string{"UTC", "Europe/London", "America/New_York", "America/Havana", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo", "Africa/Casablanca", "Asia/Gaza"}
	first, last := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for range 3000 {
		zone, err := time.LoadLocation(zones[draw.IntN(len(zones))])
		require.NoError(t, err)
		unit := []Calendar{Hour, Day, Week}[draw.IntN(3)]
		now := first + draw.Int64N(last-first)

		clock := func(ms int64) time.Time { // what the zone's clocks show, as if it were UTC
			at := time.UnixMilli(ms).In(zone)
			return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
		}
		next := clock(now).Truncate(time.Hour).Add(time.Hour)
		for unit != Hour && next.Hour() != 0 || unit == Week && next.Weekday() != time.Monday {
			next = next.Add(time.Hour)
		}
		want := now - now%60_000 + 60_000
		for clock(want).Before(next) {
			want += 60_000
		}
		require.Equal(t, want, unit.End(now, zone), "%d in %s, unit %d", now, zone, unit)
	}
}

func TestAlignedEnd(t *testing.T) {
	require.EqualValues(t, 2000, AlignedEnd(1000, 1000))
	require.EqualValues(t, 2000, AlignedEnd(1999, 1000))
	require.EqualValues(t, 0, AlignedEnd(-1, 1000))
}
