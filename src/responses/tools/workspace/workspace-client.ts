import { ApiError } from '../../../lib/api-error.ts'
import { errorText, logEvent } from '../../../lib/log.ts'
import {
  TOOLS_VERSION_HEADER,
  type WorkspaceOperation,
  type WorkspaceOperations,
} from '../../../workspace/contract.ts'
import type { Owner } from '../../model/types.ts'

/** The binding of the script of tools. */
interface ToolsService {
  fetch(url: string, init: RequestInit): Promise<Response>
}

/**
 * Asks whether the script of tools can run a call.
 *
 * @returns its version; null where it has none
 * @throws Error if it does not answer, or has no objects
 */
export async function pingTools(tools: ToolsService): Promise<string | null> {
  const { status, headers } = await tools.fetch('https://tools/health/ready', {})
  if (status !== 200) throw new Error(`the script of tools answered ${status}`)
  return headers.get(TOOLS_VERSION_HEADER)
}

/** The files of a conversation, or of a response without one. */
export interface WorkspaceClient {
  /**
   * @throws ApiError whose message is for the model: `invalid_request` for what cannot be done, `upstream` when the script
   * of tools is not available. A call without a result is stopped, or does not begin, if the script of tools can be reached.
   */
  run<Name extends Exclude<WorkspaceOperation, 'download' | 'abort'>>(
    name: Name,
    request: WorkspaceOperations[Name]['request'],
    options: RunOptions,
  ): Promise<WorkspaceOperations[Name]['result']>
  /** The content of a file with its length; null without such a file. @throws as `run` */
  download(path: string): Promise<Response | null>
}

interface RunOptions {
  signal?: AbortSignal
  /** Milliseconds until the script of tools counts as dead. */
  timeLimit: number
}

export type WorkspaceOf = (owner: Owner, workspaceId: string) => WorkspaceClient

const DOWNLOAD_LIMIT_MS = 30_000
const ABORT_LIMIT_MS = 5_000
/** Waits before repetitions, in milliseconds: in which a process that died is started again. */
const RETRY_PAUSES = [200, 1_000]

/** @param pause waits for milliseconds; replaced in tests. */
export function workspaceClient(tools: ToolsService, pause = wait): WorkspaceOf {
  return ({ organizationId, userId }, workspaceId) => {
    // The object of the name has nothing of another owner, whatever the id is.
    const name = `${organizationId}:${userId}:${workspaceId}`
    const base = `https://tools/workspaces/${encodeURIComponent(name)}`
    const post = (name: WorkspaceOperation, body: object, { signal, timeLimit }: RunOptions) =>
      repeated(() => send(tools, `${base}/${name}`, body, timeLimit, signal), pause, signal)
    /** Best effort: a call that has not begun also ends with its time. */
    const abort = (callId: string) =>
      send(tools, `${base}/abort`, { callId }, ABORT_LIMIT_MS)
        .then((response) => response.body?.cancel())
        .catch((error) => logEvent('warn', 'tool_call_not_aborted', { error: errorText(error) }))
    return {
      async run(name, request, options) {
        const response = await post(name, request, options).catch((error) => {
          // The result is not read any more, and the call must have no later effects.
          if ('callId' in request) abort(request.callId)
          throw error
        })
        if (!response.ok) throw await refusal(response)
        return (await response.json()) as never
      },
      async download(path) {
        const response = await post('download', { path }, { timeLimit: DOWNLOAD_LIMIT_MS })
        if (response.ok) return response
        if (response.status !== 404) throw await refusal(response)
        await response.body?.cancel()
        return null
      },
    }
  }
}

/**
 * Repeats a request that was lost: the workspace runs a call with effects once for its id. After a time-out it does not, as
 * the time of the tool is over.
 */
async function repeated(
  request: () => Promise<Response>,
  pause: typeof wait,
  signal: AbortSignal | undefined,
): Promise<Response> {
  for (const milliseconds of [...RETRY_PAUSES, null]) {
    try {
      return await request()
    } catch (error) {
      signal?.throwIfAborted()
      if (milliseconds === null || error instanceof TimedOut) {
        logEvent('error', 'tools_not_available', { error: errorText(error) })
        break
      }
    }
    await pause(milliseconds)
  }
  throw new ApiError('upstream', 'The tool is not available now.')
}

class TimedOut extends Error {}

/** @throws for an answer that did not come, and for 5xx */
async function send(
  tools: ToolsService,
  url: string,
  body: object,
  timeLimit: number,
  signal?: AbortSignal,
): Promise<Response> {
  const limit = AbortSignal.timeout(timeLimit)
  try {
    const response = await tools.fetch(url, {
      method: 'POST',
      body: JSON.stringify({ ...body, startBefore: Date.now() + timeLimit }),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    })
    if (response.status < 500) return response
    await response.body?.cancel()
    throw new Error(`the script of tools answered ${response.status}`)
  } catch (error) {
    throw limit.aborted ? new TimedOut('the script of tools did not answer in time') : error
  }
}

/** The message of a refusal was written by the workspace for the model. */
async function refusal(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as { error?: { message?: unknown } } | null
  const message = body?.error?.message
  return new ApiError('invalid_request', typeof message === 'string' ? message : 'The tool failed.')
}

const wait = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds))
