# Shell functions for bash: the commands of a stage with the AWS CLI alone. Usage: . examples/sqs/stage.sh
# The stage's name is in STAGE, by default signalbox.

# output NAME: print an output of the stage.
output() {
  aws cloudformation describe-stacks --stack-name "${STAGE:-signalbox}" \
    --query "Stacks[0].Outputs[?OutputKey=='$1'].OutputValue" --output text
}

# ask CONTROL_URL REPLY_URL FIELDS: send a command, whose fields are JSON without braces, and print its reply.
ask() {
  local id line handle reply end=$((SECONDS + 120))
  id="$(date +%s)-$RANDOM$RANDOM"
  aws sqs send-message --queue-url "$1" --message-body "{\"id\": \"$id\", \"reply\": true, $3}" >/dev/null || return
  while ((SECONDS < end)); do
    line=$(aws sqs receive-message --queue-url "$2" --wait-time-seconds 20 \
      --query 'Messages[0].[ReceiptHandle, Body]' --output text) || return
    handle=${line%%$'\t'*} reply=${line#*$'\t'}
    if [[ $reply == *"\"$id\""* ]]; then
      aws sqs delete-message --queue-url "$2" --receipt-handle "$handle" && echo "$reply"
      return
    elif [[ $line != None ]]; then # the reply to another program of this user
      aws sqs change-message-visibility --queue-url "$2" --receipt-handle "$handle" --visibility-timeout 0
    fi
  done
  echo "no reply in two minutes to $3: if it is no JSON, the dead letters of the commands have it and the reason" >&2
  return 1
}
