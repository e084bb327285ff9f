# frozen_string_literal: true

# Runs the cases of tests/cases/catch_up.json with the cursor of the Ruby example: ruby catch_up.rb CASES LIBRARY

require "json"

cases, library = ARGV
require File.expand_path(library)

FRAME_BYTES = 32_768 # API Gateway closes a connection on which a larger frame comes
$problems = []

def check(name, what, actual, expected)
  $problems << "#{name} #{what}: #{actual.inspect}, not #{expected.inspect}" unless actual == expected
end

def expanded(events)
  (events || []).flat_map do |event|
    topics = event["topics"] or next [event]
    (0...topics["count"]).map do |number|
      topic = format("a.%04d.%s", number, "x" * topics["padding"])
      { "topic" => topic, "sequence" => event["sequence"], "publication" => event["publication"] + number }
    end
  end
end

def check_request(name, request, expected)
  text = JSON.generate(request)
  least = expected.is_a?(Hash) && expected["after"].is_a?(Hash) && expected["after"]["at_least"]
  return check(name, "request", request["_history"], expected) unless least

  after = request["_history"]["after"]
  check(name, "since", after["since"], expected["after"]["since"])
  check(name, "topics", after["topics"].size >= least && after["topics"].values.uniq == [1], true)
  check(name, "latest topic", after["topics"].keys.any? { |topic| topic.start_with?("a.0499.") }, true)
  check(name, "size", text.size < FRAME_BYTES, true)
end

def run(one)
  name, subscription, delivered = one["name"], one["subscription"], []
  last, latest = subscription.values_at("last", "retained")
  cursor = Signalbox::Cursor.new(subscription["topic"], match: subscription["match"], last: last, latest: latest)
  deliver = lambda do |events, at, retained = false|
    expanded(events).each do |e|
      topic, publication, sequence = e.values_at("topic", "publication", "sequence")
      event = Signalbox::Event.new(topic, publication, sequence, Time.parse(at), retained, [], {})
      delivered << publication if cursor.new?(event)
    end
  end
  one["connections"].each do |connection|
    request = JSON.parse(JSON.generate(cursor.request))
    check_request(name, request, connection["requested"]["by_number"])
    check(name, "get_retained", request["get_retained"], latest)
    joined_at = connection["joined_at"]
    deliver.call(connection["retained"], joined_at, true)
    deliver.call(connection["past"], joined_at)
    cursor.caught_up(joined_at) if connection["is_caught_up"]
    deliver.call(connection["live"], connection["live_at"])
  end
  expected = one["delivered"].flat_map { |e| e.is_a?(Integer) ? [e] : (e["from"]..e["to"]).to_a }
  check(name, "delivered", delivered, expected)
end

JSON.parse(File.read(cases))["cases"].each { |one| run(one) }
abort $problems.join("\n") unless $problems.empty?
