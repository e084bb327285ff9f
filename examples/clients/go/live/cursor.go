package live

import (
	"encoding/json"
	"sort"
	"time"
)

const (
	topicsBytes      = 24000            // API Gateway accepts frames of at most 32 KB
	numberBytes      = 24               // a topic's entry without its name
	grace            = 15 * time.Minute // how far before the newest event topics without room are requested again
	keptPublications = 1000             // of events without a number
)

// Event is an event of a topic. Sequence is its number in the topic; events about sessions have none, and it is 0.
// Retained marks the latest state of the topic, which is sent on subscribing.
type Event struct {
	Topic       string
	Publication int64
	Sequence    int64
	At          time.Time
	Retained    bool
	Args        []json.RawMessage
	Kwargs      map[string]json.RawMessage
}

// Options select topics by exact, prefix or wildcard match. The Last past events come first; with Latest, a topic's
// retained event does.
type Options struct {
	Match  string
	Last   int
	Latest bool
}

// cursor is how far a subscription has been received.
type cursor struct {
	topic        string
	options      Options
	numbers      map[string]position
	received     int64 // how many events with a number
	newest       time.Time
	retained     map[string]int64 // the publication of each topic's retained event
	publications map[int64]bool   // of events without a number
	oldest       []int64          // the same in order
	since        string           // when, by the router's clock, the session began that caught up first
}

// position is the number of a topic's last event; turn orders topics by when that event came.
type position struct{ number, turn int64 }

func newCursor(topic string, options Options) *cursor {
	return &cursor{
		topic:        topic,
		options:      options,
		numbers:      map[string]position{},
		retained:     map[string]int64{},
		publications: map[int64]bool{},
	}
}

// request returns the options of SUBSCRIBE: the history after the last event, or at first the Last past events.
func (c *cursor) request() map[string]any {
	options := map[string]any{"match": c.options.Match, "get_retained": c.options.Latest}
	if last, ok := c.numbers[c.topic]; ok && c.options.Match == "exact" {
		options["_history"] = map[string]any{"after": last.number}
	} else if c.since != "" {
		options["_history"] = map[string]any{"after": c.afterEach()}
	} else if c.options.Last > 0 {
		options["_history"] = map[string]any{"last": c.options.Last}
	}
	return options
}

// afterEach returns the number of each topic. When they do not fit into a frame, it names the topics of the latest
// events and requests the others by time; isNew drops what comes again.
func (c *cursor) afterEach() map[string]any {
	topics := make([]string, 0, len(c.numbers))
	for topic := range c.numbers {
		topics = append(topics, topic)
	}
	sort.Slice(topics, func(i, j int) bool { return c.numbers[topics[i]].turn > c.numbers[topics[j]].turn })
	named, room, since := map[string]int64{}, topicsBytes, c.since
	for _, topic := range topics {
		name, _ := json.Marshal(topic) // of a string, it cannot fail
		if room -= len(name) + numberBytes; room < 0 {
			since = later(since, c.newest.Add(-grace))
			break
		}
		named[topic] = c.numbers[topic].number
	}
	return map[string]any{"since": since, "topics": named}
}

// caughtUp notes that all of the history has come that a session requested.
func (c *cursor) caughtUp(joinedAt string) {
	if c.since == "" {
		c.since = joinedAt
	}
}

// isNew returns whether an event has not come before, and takes note of it.
func (c *cursor) isNew(e Event) bool {
	if e.Sequence == 0 {
		return c.isNewPublication(e.Publication)
	}
	isKnown := c.retained[e.Topic] == e.Publication
	if e.Sequence <= c.numbers[e.Topic].number {
		return false
	}
	if e.Retained {
		c.retained[e.Topic] = e.Publication
		return !isKnown
	}
	c.received++
	c.numbers[e.Topic] = position{e.Sequence, c.received}
	if e.At.After(c.newest) {
		c.newest = e.At
	}
	return !isKnown
}

func (c *cursor) isNewPublication(publication int64) bool {
	if c.publications[publication] {
		return false
	}
	c.publications[publication] = true
	c.oldest = append(c.oldest, publication)
	if len(c.oldest) > keptPublications {
		delete(c.publications, c.oldest[0])
		c.oldest = c.oldest[1:]
	}
	return true
}

// later returns the later of a time as the router writes it and another time.
func later(text string, other time.Time) string {
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.After(other) {
		return text
	}
	return other.UTC().Format(time.RFC3339)
}
