import { type TailEnd, type TailFrame, tailCalls } from '../../../admin/calls-tail.ts'
import { readOrganization } from '../../../admin/organizations.ts'
import { identifySession } from '../../../identity/session.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { invalidRequest } from '../../../lib/api-error.ts'
import { type CallTailQuery, TAIL_POSITION } from '../../../wire/calls.ts'
import { reachIn } from '../../../wire/endpoints/permissions.ts'
import type { AppContext } from '../../context.ts'
import { sessionCookie } from '../../session-cookies.ts'
import { presentCall, presentOpenCall } from './present-call.ts'
import { sessionOf } from './require-permission.ts'

/** Time after which a browser connects again. */
const RETRY_MS = 2_000

const encoder = new TextEncoder()

/**
 * Answers with calls as server-sent events: `calls` with those that were opened, those that ended and whether some were skipped, and
 * `end` with the reason. The id of an event says where to go on (`Last-Event-ID`, else `after`).
 */
export async function tailAnswer(
  context: AppContext,
  scope: ChangeScope,
  own: string | null,
  { after, seconds, ...filter }: CallTailQuery,
): Promise<Response> {
  const { ledgerShards } = await readOrganization(scope)
  const positions = positionsOf(context.req.header('last-event-id') ?? after, ledgerShards)
  if (context.req.raw.method === 'HEAD') return eventStream(null)
  const isAllowed = () => stillReads(context, scope.organizationId, own)
  const frames = tailCalls(scope, {
    shards: ledgerShards,
    reader: sessionOf(context)?.principal.userId ?? null,
    own,
    filter,
    positions,
    seconds,
    isAllowed,
  })
  // A refusal is the answer, no event.
  const first = await frames.next()
  let next: Promise<IteratorResult<TailFrame, TailEnd>> = Promise.resolve(first)
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await next
        controller.enqueue(encoder.encode(done ? endText(value) : frameText(value)))
        if (done) controller.close()
        else next = frames.next()
      },
      async cancel() {
        next.catch(() => {})
        await frames.return('time')
      },
    },
    { highWaterMark: 0 },
  )
  return eventStream(body)
}

const eventStream = (body: ReadableStream<Uint8Array> | null) =>
  new Response(body, { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } })

function frameText({ positions, opened, closed, skipped }: TailFrame): string {
  if (opened.length + closed.length === 0 && !skipped) return ': \n\n'
  const id = [...positions].map(([shard, commit]) => `${shard}.${commit}`).join('_')
  const data = { opened: opened.map(presentOpenCall), closed: closed.map(presentCall), skipped }
  return `retry: ${RETRY_MS}\nid: ${id}\nevent: calls\ndata: ${JSON.stringify(data)}\n\n`
}

const endText = (reason: TailEnd) => `event: end\ndata: ${JSON.stringify({ reason })}\n\n`

/** @throws ApiError `invalid_request` for a text that is no id of an event. */
function positionsOf(text: string | undefined, shards: number): ReadonlyMap<number, number> {
  if (text === undefined || text === '') return new Map()
  if (!TAIL_POSITION.test(text)) throw invalidRequest('after: is not the id of an event')
  const positions = text.split('_').map((part) => part.split('.').map(Number) as [number, number])
  return new Map(positions.filter(([shard]) => shard < shards))
}

/** Whether the session of a tail is open and reaches the same calls. The administration token always does. */
async function stillReads(context: AppContext, organizationId: string, own: string | null): Promise<boolean> {
  const begun = sessionOf(context)
  if (begun === null) return true
  const session = await identifySession(context.get('deps'), sessionCookie(context) ?? '')
  if (session === null || session.sessionId !== begun.sessionId) return false
  const reach = reachIn(organizationId, 'calls.read', session.principal)
  return reach !== null && (reach === 'own') === (own !== null)
}
