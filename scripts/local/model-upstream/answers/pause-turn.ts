import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { contentText, type JsonRecord, toList, toRecord } from '../json-value.ts'
import type { ScriptRequest } from '../script-request.ts'
import type { Step } from '../script-steps.ts'
import { issueSignature } from '../signatures.ts'
import { badRequest } from '../vendor-errors.ts'
import { sendAnswer } from './answer-forms.ts'
import { sayText } from './answer-script.ts'
import { citedClaim, searchResultBlock } from './citation-answers.ts'
import {
  type AnswerBlock,
  messageAnswer,
  serverToolBlock,
  textBlock,
  thinkingBlock,
} from './message-answer.ts'

const thoughts = 'A search will tell.'

/**
 * A turn that pauses while the provider's own tool runs. It continues when the next request has its content unchanged
 * as the last assistant message; any other request is refused. It ends with the second exchange, or with the third on
 * `exchanges=3`. Everything follows from the user's text, so that nothing has to be kept between exchanges.
 * https://docs.claude.com/en/docs/build-with-claude/handling-stop-reasons
 */
export function pauseTurn(request: ScriptRequest): Iterable<Step> {
  if (request.dialect !== 'messages') return sayText(request, 'There is no pause here.')
  const messages = toList(request.json.messages)
    .map(toRecord)
    .filter(({ role }) => role !== 'system')
  const first = messages.findLastIndex((message) => message.role !== 'assistant') + 1
  const sentBlocks = messages.slice(first).flatMap((message) => blocksOf(message.content))
  const parts = partsOf(request, messages[first - 1])
  for (let done = 0; done < parts.length; done += 1) {
    if (isDeepStrictEqual(sentBlocks, parts.slice(0, done).flatMap(wholeOf)))
      return partAnswer(request, parts, done)
  }
  const refusal = badRequest(
    'messages',
    `messages.${first}.content: the content of a paused turn must be sent back complete and unchanged`,
  )
  return 'body' in refusal ? [refusal] : []
}

function partAnswer(request: ScriptRequest, parts: AnswerBlock[][], done: number): Iterable<Step> {
  const last = done === parts.length - 1
  const answer = messageAnswer(request, {
    content: parts[done] ?? [],
    stopReason: last ? 'end_turn' : 'pause_turn',
    usage: { searches: last ? 0 : 1 },
  })
  return sendAnswer(request, answer)
}

/** Each part but the last ends with a search whose result begins the next one. */
function partsOf(request: ScriptRequest, asked: JsonRecord | undefined): AnswerBlock[][] {
  const seed = createHash('sha256').update(contentText(asked?.content)).digest('hex').slice(0, 20)
  const exchanges = request.count('exchanges', 2) >= 3 ? 3 : 2
  const id = (index: number) => `srvtoolu_${seed}${index}`
  const parts: AnswerBlock[][] = []
  for (let index = 0; index < exchanges; index += 1) {
    const part = index === 0 ? opening(request, seed) : [searchResultBlock(id(index - 1))]
    if (index === exchanges - 1) part.push(citedClaim(id(index - 1)))
    else
      part.push(
        textBlock(`Search ${index + 1}.`),
        serverToolBlock(id(index), 'web_search', { query: 'owls' }),
      )
    parts.push(part)
  }
  return parts
}

function opening(request: ScriptRequest, seed: string): AnswerBlock[] {
  const { type } = toRecord(request.json.thinking)
  if (type !== 'enabled' && type !== 'adaptive') return []
  return [thinkingBlock(thoughts, issueSignature(thoughts, seed))]
}

const wholeOf = (part: AnswerBlock[]): JsonRecord[] => part.map((block) => block.whole)

/** Content without cache markers, which the caller may set on what it sends back. */
function blocksOf(content: unknown): JsonRecord[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return toList(content).map((block) => {
    const { cache_control: _, ...rest } = toRecord(block)
    return rest
  })
}
