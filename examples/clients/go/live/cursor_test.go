package live

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

const (
	casesVariable = "SIGNALBOX_CATCH_UP_CASES" // a file of cases; the repository's unless it is set
	casesFile     = "../../../../tests/cases/catch_up.json"
	frameBytes    = 32768 // API Gateway closes a connection on which a larger frame comes
)

type caseEvent struct {
	Topic       string
	Topics      *struct{ Count, Padding int }
	Sequence    int64
	Publication int64
}

type caseConnection struct {
	JoinedAt   string `json:"joined_at"`
	Requested  map[string]any
	Retained   []caseEvent
	Past       []caseEvent
	IsCaughtUp bool   `json:"is_caught_up"`
	LiveAt     string `json:"live_at"`
	Live       []caseEvent
}

type catchUpCase struct {
	Name         string
	Subscription struct {
		Topic, Match string
		Last         int
		Retained     bool
	}
	Connections []caseConnection
	Delivered   []any
}

// TestCatchUp holds the cursor to the cases that all clients share.
func TestCatchUp(t *testing.T) {
	file := os.Getenv(casesVariable)
	if file == "" {
		file = casesFile
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Cases []catchUpCase }
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for _, one := range document.Cases {
		t.Run(one.Name, func(t *testing.T) { one.run(t) })
	}
}

func (c catchUpCase) run(t *testing.T) {
	s := c.Subscription
	position := newCursor(s.Topic, Options{Match: s.Match, Last: s.Last, Latest: s.Retained})
	var delivered []int64
	receive := func(events []caseEvent, at string, retained bool) {
		for _, one := range expanded(events) {
			published, _ := time.Parse(time.RFC3339, at)
			e := Event{Topic: one.Topic, Publication: one.Publication, Sequence: one.Sequence, At: published, Retained: retained}
			if position.isNew(e) {
				delivered = append(delivered, one.Publication)
			}
		}
	}
	for _, connection := range c.Connections {
		checkRequest(t, position.request(), connection.Requested["by_number"], s.Retained)
		receive(connection.Retained, connection.JoinedAt, true)
		receive(connection.Past, connection.JoinedAt, false)
		if connection.IsCaughtUp {
			position.caughtUp(connection.JoinedAt)
		}
		receive(connection.Live, connection.LiveAt, false)
	}
	if expected := publications(c.Delivered); !reflect.DeepEqual(delivered, expected) {
		t.Errorf("delivered %v, not %v", delivered, expected)
	}
}

func checkRequest(t *testing.T, options map[string]any, expected any, retained bool) {
	t.Helper()
	text, _ := json.Marshal(options)
	var requested map[string]any
	_ = json.Unmarshal(text, &requested)
	if requested["get_retained"] != retained {
		t.Errorf("get_retained is %v, not %v", requested["get_retained"], retained)
	}
	after, _ := get(expected, "after").(map[string]any)
	least, isLarge := after["at_least"].(float64)
	if !isLarge {
		if !reflect.DeepEqual(requested["_history"], expected) {
			t.Errorf("requested %v, not %v", requested["_history"], expected)
		}
		return
	}
	topics, _ := get(get(requested["_history"], "after"), "topics").(map[string]any)
	if since := get(get(requested["_history"], "after"), "since"); since != after["since"] {
		t.Errorf("requested since %v, not %v", since, after["since"])
	}
	if len(topics) < int(least) || len(text) >= frameBytes {
		t.Errorf("%d topics in %d bytes", len(topics), len(text))
	}
	hasLatest := false
	for topic, number := range topics {
		hasLatest = hasLatest || strings.HasPrefix(topic, "a.0499.")
		if number != 1.0 {
			t.Errorf("%s is at %v", topic, number)
		}
	}
	if !hasLatest {
		t.Error("the latest topic is not named")
	}
}

func get(document any, name string) any {
	fields, _ := document.(map[string]any)
	return fields[name]
}

func expanded(events []caseEvent) []caseEvent {
	var all []caseEvent
	for _, one := range events {
		if one.Topics == nil {
			all = append(all, one)
			continue
		}
		for number := range one.Topics.Count {
			topic := fmt.Sprintf("a.%04d.%s", number, strings.Repeat("x", one.Topics.Padding))
			all = append(all, caseEvent{Topic: topic, Sequence: one.Sequence, Publication: one.Publication + int64(number)})
		}
	}
	return all
}

func publications(listed []any) []int64 {
	var all []int64
	for _, one := range listed {
		from, isNumber := one.(float64)
		to := from
		if !isNumber {
			from, to = get(one, "from").(float64), get(one, "to").(float64)
		}
		for publication := int64(from); publication <= int64(to); publication++ {
			all = append(all, publication)
		}
	}
	return all
}
