import { splitIntoPieces } from '../answer-plan.ts'
import { nextIdentifier } from '../identifiers.ts'
import { issueRedactedData, issueSignature } from '../signatures.ts'
import { type AnswerScript, answerScript } from './answer-script.ts'
import { type ChatAnswer, textDeltas } from './chat-answer.ts'
import { textBlock, thinkingBlock, wholeBlock } from './message-answer.ts'

const thoughts = 'The user asks for a word. I think of one, with an é and a 🦉.'
const answer = 'The word is marmalade.'
const usage = { thinking: 9, output: 15 }

function reasoned(member: string | undefined): ChatAnswer {
  const before = member === undefined ? [] : textDeltas(splitIntoPieces(thoughts), member)
  return {
    deltas: [...before, ...textDeltas(splitIntoPieces(answer))],
    message: { content: answer, ...(member === undefined ? {} : { [member]: thoughts }) },
    usage: { reasoning: usage.thinking, completion: usage.output },
  }
}

const thinking = (shown?: string) => {
  const signature = issueSignature(thoughts, nextIdentifier('seed'))
  return { content: [thinkingBlock(thoughts, signature, shown), textBlock(answer)], usage }
}

function redacted() {
  const data = () =>
    wholeBlock({ type: 'redacted_thinking', data: issueRedactedData(nextIdentifier('seed')) })
  const signature = issueSignature(thoughts, nextIdentifier('seed'))
  return { content: [data(), thinkingBlock(thoughts, signature), data(), textBlock(answer)], usage }
}

/** Scripts about thinking, by name. Servers of chat completions name it in two ways, and OpenAI does not show it. */
export const thinkingAnswers: [string, AnswerScript][] = [
  [
    'thinking',
    answerScript(
      () => reasoned('reasoning_content'),
      () => thinking(),
    ),
  ],
  [
    'thinking-as-reasoning',
    answerScript(
      () => reasoned('reasoning'),
      () => thinking(),
    ),
  ],
  [
    'thinking-omitted',
    answerScript(
      () => reasoned(undefined),
      () => thinking(''),
    ),
  ],
  ['redacted-thinking', answerScript(() => reasoned(undefined), redacted)],
]
