# frozen_string_literal: true

# Prints a container's log and the states of its record: ruby example.rb trial.container.42
require_relative "signalbox_live"

$stdout.sync = true
url, realm, user, ticket = %w[URL REALM USER TICKET].map { |name| ENV.fetch("SIGNALBOX_#{name}") }
live = Signalbox::Live.new(url: url, realm: realm, user: user, ticket: ticket)
container = ARGV.fetch(0)
live.follow("#{container}.log.", match: "prefix", last: 100) { |event| puts "log: #{event.args[0]}" }
live.follow("#{container}.record", latest: true) { |event| puts "record: #{event.args[0]["state"]}" }
live.run
