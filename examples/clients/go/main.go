// Tails a container's log and follows its record: go run . trial.container.42
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"signalbox/examples/clients/go/live"
)

func main() {
	get := os.Getenv
	client := live.Live{URL: get("SIGNALBOX_URL"), Realm: get("SIGNALBOX_REALM"), User: get("SIGNALBOX_USER"), Ticket: get("SIGNALBOX_TICKET")}
	container := os.Args[1]
	client.Follow(container+".log.", live.Options{Match: "prefix", Last: 100}, func(event live.Event) {
		var line string
		_ = json.Unmarshal(event.Args[0], &line)
		fmt.Println("log:", line)
	})
	client.Follow(container+".record", live.Options{Latest: true}, func(event live.Event) {
		var record struct{ State string }
		_ = json.Unmarshal(event.Args[0], &record)
		fmt.Println("record:", record.State)
	})
	log.Fatal(client.Run(context.Background()))
}
