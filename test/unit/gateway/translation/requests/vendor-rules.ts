import { type Json, listOf, objectOf, textOf } from '../../../../../src/gateway/protocols/json.ts'

/** Faults for which the vendor refuses a messages request (https://docs.anthropic.com/en/api/messages). */
export function brokenMessagesRules(request: Json): string[] {
  const broken: string[] = []
  const rule = (holds: boolean, converted: string) => {
    if (!holds) broken.push(converted)
  }
  const turns = listOf(request.messages)
  rule(turns.length > 0, 'no turn')
  rule(turns[0]?.role === 'user', 'the first turn is not the user’s')
  const ids = new Set<string>()
  for (const [index, turn] of turns.entries()) {
    const blocks = listOf(turn.content)
    const at = `turn ${index}`
    rule(blocks.length > 0, `${at} is empty`)
    rule(index === 0 || turns[index - 1]?.role !== turn.role, `${at} has the role of the turn before it`)
    for (const block of textsWithin(blocks)) rule(block.trim() !== '', `${at} has an empty text`)
    const calls = blocks.filter((block) => block.type === 'tool_use').map((block) => textOf(block.id))
    rule(calls.length === 0 || turn.role === 'assistant', `${at} of the user calls a tool`)
    for (const id of calls) {
      rule(/^[a-zA-Z0-9_-]+$/.test(id), `${at} calls with the id ${id}`)
      rule(!ids.has(id), `${at} repeats the id ${id}`)
      ids.add(id)
    }
    const results = listOf(objectOf(turns[index + 1]).content).map((block) => block.tool_use_id)
    rule(
      calls.every((id) => results.filter((result) => result === id).length === 1),
      `${at} has a call without one result`,
    )
    const answered = listOf(objectOf(turns[index - 1]).content).map((block) => block.id)
    const isResult = blocks.map((block) => block.type === 'tool_result')
    rule(
      isResult.lastIndexOf(true) < 0 || !isResult.slice(0, isResult.lastIndexOf(true)).includes(false),
      `${at} has a result after something else`,
    )
    for (const block of blocks.filter((block) => block.type === 'tool_result')) {
      rule(answered.includes(block.tool_use_id), `${at} has a result without a call`)
      rule(
        listOf(block.content).every((part) => part.cache_control === undefined),
        `${at} marks within a result`,
      )
    }
    for (const block of blocks.filter((block) => block.type === 'tool_use')) {
      rule(objectOf(block.input) === block.input, `${at} has input that is no object`)
    }
  }
  for (const block of listOf(request.system)) rule(textOf(block.text).trim() !== '', 'an empty system text')
  const last = listOf(objectOf(turns.at(-1)).content).at(-1)
  const prefilled = turns.at(-1)?.role === 'assistant'
  rule(!prefilled || textOf(last?.text) === textOf(last?.text).trimEnd(), 'white space at the end')
  rule(ids.size === 0 || listOf(request.tools).length > 0, 'calls without tools')
  const thinks = objectOf(request.thinking).type !== undefined
  rule(
    !thinks || !['any', 'tool'].includes(textOf(objectOf(request.tool_choice).type)),
    'thinks beside a forced call',
  )
  rule(!thinks || request.temperature === undefined, 'thinks beside a temperature')
  rule(request.temperature === undefined || request.top_p === undefined, 'both sampling members')
  const budget = objectOf(request.thinking).budget_tokens
  rule(
    budget === undefined || (Number(budget) >= 1024 && Number(budget) < Number(request.max_tokens)),
    'the budget',
  )
  rule(request.tool_choice === undefined || listOf(request.tools).length > 0, 'a choice without tools')
  for (const tool of listOf(request.tools)) {
    rule(/^[a-zA-Z0-9_-]{1,128}$/.test(textOf(tool.name)), `a tool named ${textOf(tool.name)}`)
  }
  return broken
}

const textsWithin = (blocks: Json[]): string[] =>
  blocks.flatMap((block) =>
    block.type === 'text' ? [textOf(block.text)] : textsWithin(listOf(block.content)),
  )

/**
 * Faults for which the vendor refuses a chat completion request (https://platform.openai.com/docs/api-reference/chat).
 */
export function brokenChatRules(request: Json): string[] {
  const broken: string[] = []
  const rule = (holds: boolean, converted: string) => {
    if (!holds) broken.push(converted)
  }
  let open: string[] = []
  for (const [index, message] of listOf(request.messages).entries()) {
    const at = `message ${index}`
    if (message.role === 'tool') {
      rule(open.includes(textOf(message.tool_call_id)), `${at} answers no call`)
      rule(typeof message.content === 'string', `${at} is no text`)
      open = open.filter((id) => id !== message.tool_call_id)
      continue
    }
    rule(open.length === 0, `${at} follows calls without results`)
    open = listOf(message.tool_calls).map((call) => textOf(call.id))
    rule(new Set(open).size === open.length, `${at} has two calls of one id`)
    rule(
      open.every((id) => id !== '' && id.length <= 40),
      `${at} has ids of the wrong length`,
    )
    for (const call of listOf(message.tool_calls)) {
      const { name, arguments: written } = objectOf(call.function)
      rule(/^[a-zA-Z0-9_-]{1,64}$/.test(textOf(name)), `${at} calls ${textOf(name)}`)
      rule(
        typeof written === 'string' && typeof JSON.parse(written) === 'object',
        `${at} has arguments of no kind`,
      )
    }
    const said =
      message.content !== undefined && message.content !== '' && listOf(message.content).length !== 0
    rule(said || typeof message.content === 'string' || open.length > 0, `${at} says nothing`)
  }
  rule(open.length === 0, 'calls at the end have no results')
  for (const tool of listOf(request.tools)) {
    rule(/^[a-zA-Z0-9_-]{1,64}$/.test(textOf(objectOf(tool.function).name)), 'the name of a tool')
  }
  return broken
}
