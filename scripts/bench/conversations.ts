interface Turn {
  role: 'user' | 'assistant'
  content: string
}

const OPENING: readonly Turn[] = [
  { role: 'user', content: 'Which of our suppliers deliver on Saturdays?' },
  { role: 'assistant', content: 'Two of them do: the bakery before seven, and the printer until noon.' },
]

const SHORTEST_WITH_OPENING = 512

const SENTENCE = 'Summarise the minutes of the meeting, name who agreed to do what, and keep every date. '
const LINE = '  const total = items.reduce((sum, { price, count }) => sum + price * count, 0) // in "cents"\n'

/** Turns of about 4 KB with code in them, as a coding agent sends them back with each call: line breaks and quotes. */
const LONG_TURNS: readonly Turn[] = [
  { role: 'user', content: `The test that fails, and what it calls:\n\n${LINE.repeat(42)}` },
  { role: 'assistant', content: `This is what I would change:\n\n${LINE.repeat(42)}` },
]

/**
 * A request body of about `bytes`: a short exchange if there is room for one, as many long turns as fit, and a last question that fills it up.
 *
 * @param members of the body besides its messages
 * @param question how the last message begins; what fills it up follows
 */
export function conversation(
  members: Record<string, unknown>,
  question: string,
  bytes: number,
): Record<string, unknown> {
  const last: Turn = { role: 'user', content: question }
  const lengthOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
  const opening = bytes < SHORTEST_WITH_OPENING ? [] : OPENING
  const space = bytes - lengthOf({ ...members, messages: [...opening, last] })
  // A list has a bracket more around two turns than they have commas among others.
  const pairLength = lengthOf(LONG_TURNS) - 1
  const pairs = Math.max(0, Math.floor(space / pairLength))
  const turns = Array.from({ length: pairs }, () => LONG_TURNS).flat()
  const missing = Math.max(0, space - pairs * pairLength)
  const filling = SENTENCE.repeat(Math.ceil(missing / SENTENCE.length)).slice(0, missing)
  return { ...members, messages: [...opening, ...turns, { ...last, content: question + filling }] }
}
