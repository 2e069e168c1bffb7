import { storedDefinition } from '../../agents/definitions/stored-definition.ts'
import { findVisibleAgent, mayUseAgents } from '../../agents/definitions/visible-agents.ts'
import { checkMembers, inputsOf } from '../../agents/live/agent-inputs.ts'
import { beginningOfRun, type RequestedRun, runIdOf, runResponse } from '../../agents/live/run-response.ts'
import { selectRunView } from '../../agents/live/run-view.store.ts'
import { beginRun } from '../../agents/runs/begin-run.ts'
import { cancelInProgress } from '../../agents/runs/change-run.ts'
import { openMetadata } from '../../agents/runs/run-inputs.ts'
import { compatibilityOf } from '../../identity/principal.ts'
import { ApiError, invalidRequest } from '../../lib/api-error.ts'
import { errorText, logEvent, redact } from '../../lib/log.ts'
import { runSlices } from '../../lib/slices.ts'
import { redactSettings } from '../../responses/items/redaction.ts'
import type { AgentRequest } from '../../responses/model/types.ts'
import { renderedResponse } from '../../responses/open-responses/rendered-response.ts'
import { agentIdOf, agentModel } from '../../wire/agent-model.ts'
import { isUuid } from '../../wire/management-fields.ts'
import type { Includes } from '../../wire/response-queries.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import { selectedCompatibility } from '../compatibility.ts'
import type { AppContext } from '../context.ts'
import { idempotencyKey } from '../idempotency-key.ts'
import { withAdmission } from '../middleware/admission.ts'
import { OpenReaders } from '../open-readers.ts'
import { runStream, Wait } from '../run-stream.ts'
import { unknownId } from '../validated-request.ts'
import { currentPolicy, ownerOf, redactForOwner, refreshRights } from './response-answers.ts'
import { findIncluding, type ResponseHandle } from './response-handle.ts'
import { eventStream, inForm, lastEventId, wholeStream } from './response-streams.ts'

// Runs of agents as responses (interface: Responses; Events, Agent-run responses). They are views of the responses of the run's
// steps.

/** Streams of runs that a user may read at a time, in one isolate. */
const MOST_READERS = 200
const readers = new OpenReaders(MOST_READERS)
/** Attempts whose responses are read at a time. */
const READ_TOGETHER = 8
const NO_INCLUDES: Includes = new Set()

/** Begins a run of an agent, and answers with it as a response: streamed, at once, or when it has ended. */
export async function createRun(context: AppContext, request: AgentRequest): Promise<Response> {
  const runId = await withAdmission(context, () => begin(context, request))
  const run = await readRun(context, runId)
  const { stream, background } = request.settings
  if (stream === true) return streamed(context, run)
  const shown = background === true ? run : await endedRun(context, run)
  return answer(context, shown, NO_INCLUDES)
}

/** Answers with a run, or with all of its events. */
export async function retrieveRun(
  context: AppContext,
  { stream = false, startingAfter, includes }: RunRetrieval,
): Promise<Response> {
  if (stream) refusePosition(startingAfter ?? lastEventId(context) ?? 0)
  const run = await ownRun(context)
  return stream ? streamed(context, run) : answer(context, run, includes)
}

interface RunRetrieval {
  stream?: boolean | undefined
  startingAfter?: number | undefined
  includes: Includes
}

/** Cancels a run; one that has ended stays as it is. */
export async function cancelRunResponse(context: AppContext): Promise<Response> {
  const { deps } = context.var
  const run = await ownRun(context)
  const { organizationId } = ownerOf(context)
  await cancelInProgress(deps, { database: deps.database, organizationId }, run.id).catch((error) => {
    // The run has ended, perhaps meanwhile.
    if (!(error instanceof ApiError) || error.code !== 'conflict') throw error
  })
  return answer(context, await readRun(context, run.id), NO_INCLUDES)
}

/** @throws ApiError invalid_request: a run is deleted by its retention only; not_found. */
export async function refuseDeletion(context: AppContext): Promise<never> {
  await ownRun(context)
  throw invalidRequest(
    'The response of an agent run cannot be deleted. It is deleted with its run, after the retention of runs.',
    'invalid_request',
  )
}

/** The response of the first step, whose input is that of the run; null before it begins. @throws ApiError not_found */
export async function firstStep(context: AppContext): Promise<ResponseHandle | null> {
  const [attempt] = (await ownRun(context)).attempts
  return attempt?.hasResponse ? handleOfAttempt(context, attempt.responseId) : null
}

/** @returns the id of the run. @throws ApiError invalid_request; also for an agent that the caller may not run. */
async function begin(context: AppContext, { settings, text }: AgentRequest): Promise<string> {
  const { deps, rights } = context.var
  const id = agentIdOf(settings.model).toLowerCase()
  const agent = isUuid(id) ? await findVisibleAgent(deps, rights.principal, id) : null
  if (agent === null) throw unknownAgent(settings.model)
  checkMembers({ settings, text })
  const inputs = inputsOf(storedDefinition(agent.definition), { settings, text })
  const metadata = settings.metadata ?? {}
  const key = idempotencyKey(context)
  try {
    const { runId } = await beginRun(deps, {
      agent,
      owner: ownerOf(context),
      origin: 'api',
      inputs,
      metadata,
      ...(key !== null && {
        repeatable: {
          identities: [`response ${key}`],
          content: JSON.stringify([agent.id, inputs, metadata]),
        },
      }),
    })
    return runId
  } catch (error) {
    // This surface has no 422 (interface: Errors).
    if (!(error instanceof ApiError) || error.kind !== 'unprocessable') throw error
    const { message, code = 'invalid_body' } = error
    throw new ApiError('invalid_request', message, { code, param: 'inputs' })
  }
}

function unknownAgent(model: string): ApiError {
  const shown = redact(model.slice(0, 100).replace(/\p{Cc}/gu, ''))
  const message = `The model ${shown} does not exist. GET /v1/models lists the models you may use.`
  return new ApiError('invalid_request', message, { code: 'model_not_found' })
}

/** Events of a run can only be replayed from the first one on (interface: Events). @throws ApiError invalid_request */
function refusePosition(after: number): void {
  if (after === 0) return
  throw invalidRequest(
    'starting_after: must be 0 or left out for the response of an agent run, and so must Last-Event-ID',
    'invalid_query',
  )
}

/** @throws ApiError not_found for the run of another user, for a key that may not use agents, and for a malformed id. */
async function ownRun(context: AppContext): Promise<RequestedRun> {
  const text = context.req.param('responseId') ?? ''
  const runId = mayUseAgents(context.var.rights.principal) ? runIdOf(text) : null
  const run = runId && (await findRun(context, runId))
  if (!run) throw unknownId('Response', text)
  return run
}

/** A run that exists. @throws ApiError not_found when its retention has deleted it meanwhile. */
async function readRun(context: AppContext, runId: string): Promise<RequestedRun> {
  const run = await findRun(context, runId)
  if (run === null) throw unknownId('Run', runId)
  return run
}

async function findRun(context: AppContext, runId: string): Promise<RequestedRun | null> {
  const { configuration, database } = context.var.deps
  const run = await selectRunView(database, ownerOf(context), runId)
  if (run === null) return null
  const metadata = openMetadata(configuration.VAULT_KEYS, run.id, run.sealedInputs)
  const policy = await currentPolicy(context, agentModel(run.agentId))
  return { ...run, metadata: await runSlices(redactSettings(policy, metadata)) }
}

const handleOfAttempt = (context: AppContext, id: string): ResponseHandle => ({
  id,
  owner: ownerOf(context),
  object: context.var.deps.responseObject(ownerOf(context).organizationId, id),
})

const formOf = (context: AppContext) =>
  selectedCompatibility(context) ?? compatibilityOf(context.var.rights.principal)

/** @throws ApiError rate_limited for a user with too many streams of runs. */
function streamed(context: AppContext, run: RequestedRun): Response {
  if (context.req.raw.method === 'HEAD') return eventStream(context, null)
  const { deps } = context.var
  const { STREAM_HEARTBEAT_MS: heartbeatMilliseconds } = deps.configuration
  const { organizationId, userId } = ownerOf(context)
  const reader = readers.open(`${organizationId}/${userId}`, deps.clock())
  if (reader === null) {
    throw new ApiError('rate_limited', 'You read too many runs at once. Try again when one has ended.', {
      retryAfterSeconds: heartbeatMilliseconds / 1_000,
      limit: 'user',
    })
  }
  const form = formOf(context)
  const source = {
    heartbeatMilliseconds,
    readRun: () => readRun(context, run.id),
    openAttempt: (id: string) => wholeStream(context, handleOfAttempt(context, id)),
    beginning: (known: RequestedRun) => beginningOfRun(known, form),
    async ended(known: RequestedRun) {
      await refreshRights(context)
      return shownRun(context, known, NO_INCLUDES)
    },
  }
  const frames = counted(runStream(source, run), reader, deps.clock)
  return eventStream(context, inForm(context, form, frames))
}

/** A stream whose reader is counted until it has ended. */
function counted(
  frames: ReadableStream<Uint8Array>,
  reader: NonNullable<ReturnType<OpenReaders['open']>>,
  clock: () => number,
): ReadableStream<Uint8Array> {
  const source = frames.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        reader.seen(clock())
        try {
          const { done, value } = await source.read()
          if (!done) return controller.enqueue(value)
          controller.close()
          reader.close()
        } catch (error) {
          reader.close()
          throw error
        }
      },
      cancel(reason) {
        reader.close()
        return source.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/** Waits for the end of a run. When the caller leaves first, the run continues. */
async function endedRun(context: AppContext, first: RequestedRun): Promise<RequestedRun> {
  const { signal } = context.req.raw
  const wait = new Wait(context.var.deps.configuration.STREAM_HEARTBEAT_MS, signal)
  let run = first
  let awaited = ''
  while (mayChange(run) && !signal.aborted) {
    const open = run.attempts.find(({ isOpen, hasResponse }) => isOpen && hasResponse)
    if (open && open.responseId !== awaited) {
      awaited = open.responseId
      await endOf(context, awaited)
      wait.restart()
    }
    // Throws when the caller leaves.
    await wait.next().catch(() => false)
    run = await wait.tolerating(readRun(context, run.id), run)
  }
  await refreshRights(context)
  return run
}

/** Whether items may follow in this run. */
const mayChange = ({ status, attempts }: RequestedRun): boolean =>
  status === 'in_progress' || attempts.some(({ isOpen }) => isOpen)

/** Waits for the end of a response, without polling Postgres. The response's object may restart: the run is read again then. */
async function endOf(context: AppContext, responseId: string): Promise<void> {
  const { signal } = context.req.raw
  const left = Promise.withResolvers<void>()
  const leave = () => left.resolve()
  signal.addEventListener('abort', leave)
  const { object, owner } = handleOfAttempt(context, responseId)
  const ended = object.ended(owner).catch((error) => {
    logEvent('warn', 'run_response_not_awaited', { error: errorText(error) })
  })
  await Promise.race([ended, left.promise])
  signal.removeEventListener('abort', leave)
}

const answer = async (context: AppContext, run: RequestedRun, includes: Includes): Promise<Response> =>
  context.json(renderedResponse(await shownRun(context, run, includes)))

/** A run as its owner may read it: each of its responses under the policies for its model. */
async function shownRun(context: AppContext, run: RequestedRun, includes: Includes): Promise<ResponseObject> {
  const ids = run.attempts.filter(({ hasResponse }) => hasResponse).map(({ responseId }) => responseId)
  const shown: Array<ResponseObject | null> = []
  for (let at = 0; at < ids.length; at += READ_TOGETHER) {
    const some = ids.slice(at, at + READ_TOGETHER)
    shown.push(...(await Promise.all(some.map((id) => shownAttempt(context, id, includes)))))
  }
  return runResponse(
    run,
    shown.filter((response) => response !== null),
    formOf(context),
  )
}

/** Null for a response that its owner has deleted. */
async function shownAttempt(context: AppContext, id: string, includes: Includes) {
  const response = await findIncluding(context, handleOfAttempt(context, id), includes)
  return response && redactForOwner(context, response, includes)
}
