import { type Json, listOf, objectOf, textOf } from '../../protocols/json.ts'

interface WholeChoice {
  content: string
  refusal: string
  reasoning: string
  calls: Array<{ id: string; name: string; json: string; more: Json }>
  annotations: Json[]
  finishReason: unknown
}

/** @param chunks of one stream, as `ChatEncoder` writes them. @returns the chat completion with their contents. */
export function chatAnswer(chunks: Json[]): Json {
  const choices = new Map<number, WholeChoice>()
  for (const chunk of chunks) {
    for (const choice of listOf(chunk.choices)) addDelta(choices, choice)
  }
  const ordered = [...choices.entries()].sort(([left], [right]) => left - right)
  return { ...chunks[0], object: 'chat.completion', choices: ordered.map(wholeChoice) }
}

function addDelta(choices: Map<number, WholeChoice>, data: Json): void {
  const index = Number(data.index)
  const choice = choices.get(index) ?? {
    content: '',
    refusal: '',
    reasoning: '',
    calls: [],
    annotations: [],
    finishReason: null,
  }
  choices.set(index, choice)
  const delta = objectOf(data.delta)
  choice.content += textOf(delta.content)
  choice.refusal += textOf(delta.refusal)
  choice.reasoning += textOf(delta.reasoning_content)
  for (const annotation of listOf(delta.annotations)) choice.annotations.push(annotation)
  choice.finishReason = data.finish_reason ?? choice.finishReason
  for (const fragment of listOf(delta.tool_calls)) addFragment(choice, fragment)
}

function addFragment(choice: WholeChoice, fragment: Json): void {
  const made = objectOf(fragment.function)
  const known = choice.calls[Number(fragment.index)]
  if (known) known.json += textOf(made.arguments)
  else {
    const { extra_content } = fragment
    const more = extra_content === undefined ? {} : { extra_content }
    choice.calls.push({
      id: textOf(fragment.id),
      name: textOf(made.name),
      json: textOf(made.arguments),
      more,
    })
  }
}

function wholeChoice([index, choice]: [number, WholeChoice]): Json {
  const { content, refusal, reasoning, annotations } = choice
  const calls = choice.calls.map(({ id, name, json, more }) => ({
    id,
    type: 'function',
    function: { name, arguments: json },
    ...more,
  }))
  const withoutText = content === '' && (calls.length > 0 || refusal !== '')
  return {
    index,
    message: {
      role: 'assistant',
      content: withoutText ? null : content,
      refusal: refusal === '' ? null : refusal,
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
      ...(annotations.length === 0 ? {} : { annotations }),
    },
    logprobs: null,
    finish_reason: choice.finishReason,
  }
}
