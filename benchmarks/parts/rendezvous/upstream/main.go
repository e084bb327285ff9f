// Command upstream runs the rendezvous of the real Snowflake client: for each offer on standard input, one JSON object
// a line, it writes one line with the answer and what it took.
//
// The code that sends, waits and receives is upstream's own, unchanged. Only the SQS client inside it is wrapped, to see
// when the offer was sent and when SQS says that the reply was put into the client's queue.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/pion/webrtc/v4"
	snowflake "gitlab.torproject.org/tpo/anti-censorship/pluggable-transports/snowflake/v2/client/lib"
)

// Result is one line of the output; times are in milliseconds, and nil where nothing was seen.
type Result struct {
	Index    int            `json:"index"`
	ClientMS float64        `json:"client_ms"`
	InsideMS *float64       `json:"inside_ms"`
	Answer   *string        `json:"answer"`
	Error    string         `json:"error"`
	Calls    map[string]int `json:"calls"`
}

func main() {
	queue := flag.String("queue", "", "URL of the broker queue, as the client is given it")
	nat := flag.String("nat", "unrestricted", "NAT type that the client tells")
	atOnce := flag.Int("at-once", 1, "how many clients there are at a time")
	flag.Parse()
	log.SetOutput(io.Discard)

	config := snowflake.ClientConfig{SQSQueueURL: *queue, SQSCredsStr: os.Getenv("SNOWFLAKE_SQSCREDS")}
	offers := readOffers(os.Stdin)
	clients := make(chan *observedClient, *atOnce)
	for range *atOnce {
		clients <- newObservedClient(config)
	}
	exchangeAll(clients, offers, *nat)
}

// exchangeAll gives each offer to the next client that is free, and writes results as they come.
func exchangeAll(clients chan *observedClient, offers []webrtc.SessionDescription, nat string) {
	results := json.NewEncoder(os.Stdout)
	var writing sync.Mutex
	var running sync.WaitGroup
	for index := range offers {
		client := <-clients
		running.Add(1)
		go func() {
			defer running.Done()
			result := exchange(client, &offers[index], nat)
			result.Index = index
			clients <- client
			writing.Lock()
			defer writing.Unlock()
			if err := results.Encode(result); err != nil {
				os.Exit(1)
			}
		}()
	}
	running.Wait()
}

func exchange(client *observedClient, offer *webrtc.SessionDescription, nat string) Result {
	client.observer.reset()
	started := time.Now()
	answer, err := client.broker.Negotiate(offer, nat)
	result := Result{ClientMS: milliseconds(time.Since(started)), Calls: client.observer.calls}
	if err != nil {
		result.Error = err.Error()
	} else {
		result.Answer = &answer.SDP
	}
	if arrived := client.observer.arrivedAt; !arrived.IsZero() {
		inside := milliseconds(arrived.Sub(client.observer.sentAt))
		result.InsideMS = &inside
	}
	return result
}

func readOffers(input io.Reader) []webrtc.SessionDescription {
	var offers []webrtc.SessionDescription
	lines := bufio.NewScanner(input)
	for lines.Scan() {
		var offer webrtc.SessionDescription
		if err := json.Unmarshal(lines.Bytes(), &offer); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(2)
		}
		offers = append(offers, offer)
	}
	return offers
}

func milliseconds(duration time.Duration) float64 {
	return float64(duration.Microseconds()) / 1000
}
