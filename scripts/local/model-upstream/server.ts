import type { IncomingMessage, ServerResponse } from 'node:http'
import { listenOnLoopback, type RunningServer } from '../../node/loopback-server.ts'
import { McpUpstream } from '../mcp-upstream/mcp-upstream.ts'
import { answerMessages, countMessageTokens } from './anthropic-messages.ts'
import { presentedCredential } from './authentication.ts'
import { builtInScripts, wireScripts } from './built-in-scripts.ts'
import type { CheckedRequest } from './checks/fault.ts'
import { answerControl } from './control-api.ts'
import { Exchange } from './exchange.ts'
import { isRecord, type JsonRecord, toText } from './json-value.ts'
import { traitsOf } from './model-traits.ts'
import { answerChat } from './openai-chat.ts'
import { answerCompletion } from './openai-completions.ts'
import { answerInputTokens } from './openai-input-tokens.ts'
import { type Dialect, type Reply, vendorHeaders } from './reply.ts'
import { checkWhole, type RequestCheck, type RequestContext, requestChecks } from './request-check.ts'
import { RequestLog } from './request-log.ts'
import { ScriptLibrary, type SelectedScript } from './script-library.ts'
import { playSteps } from './script-player.ts'
import { SignalBoard } from './signal-board.ts'
import { anthropicError, badRequest, openAiError, refusal } from './vendor-errors.ts'
import { INNER_HEADER, recordIn } from './vendors/vendor-request.ts'
import { rawScriptOf, vendorOf } from './vendors/vendors.ts'

export interface ModelUpstreamOptions {
  /** Port on 127.0.0.1; 0 takes a free one. */
  port: number
  /** Whether requests are recorded for `GET /control/requests`; true unless set. */
  record?: boolean | undefined
  /** Called after each answered request with one line that holds no header and no body. */
  onAnswered?: ((line: string) => void) | undefined
}

const maximumBody = 256 * 1024 * 1024

interface GenerationRoute {
  dialect: Dialect
  /** Bodies above this many bytes get the prebuilt answer of the script `canned`, without being parsed. */
  maximumParsed: number
  /** Whether it generates. Clients call counters beside the real call, so that only the errors of scripts apply to them. */
  generates: boolean
  check: RequestCheck
  answer: (body: JsonRecord, raw: Buffer, context: RequestContext) => Reply
}

const generationRoutes: Record<string, GenerationRoute> = {
  '/v1/chat/completions': {
    dialect: 'chat',
    maximumParsed: 1024 * 1024,
    generates: true,
    check: requestChecks.chat,
    answer: (body, _, { traits }) => answerChat(body, traits),
  },
  '/v1/completions': {
    dialect: 'completions',
    maximumParsed: 1024 * 1024,
    generates: true,
    check: requestChecks.completions,
    answer: answerCompletion,
  },
  '/v1/responses/input_tokens': {
    dialect: 'chat',
    maximumParsed: maximumBody,
    generates: false,
    check: () => ({ fault: undefined, unknownMembers: [] }),
    answer: (body, _, { traits }) => answerInputTokens(body, traits),
  },
  '/v1/messages': {
    dialect: 'messages',
    maximumParsed: 1024 * 1024,
    generates: true,
    check: requestChecks.messages,
    answer: (body, raw, context) =>
      answerMessages(
        body,
        raw.includes('"cache_control"'),
        toText(context.headers['anthropic-beta']),
        (whole) => checkWhole(whole, context, false).fault,
      ),
  },
  '/v1/messages/count_tokens': {
    dialect: 'messages',
    maximumParsed: maximumBody,
    generates: false,
    check: requestChecks.count,
    answer: countMessageTokens,
  },
}

/** A request to one of the routes above. */
interface Call {
  route: GenerationRoute
  raw: Buffer
  /** The body, where it is small enough to be parsed and is a JSON object. */
  body: JsonRecord | undefined
  script: SelectedScript | undefined
  context: RequestContext
  checked: CheckedRequest
}

/**
 * Starts the scripted model upstream on 127.0.0.1: OpenAI chat completions, completions and token counts,
 * Anthropic messages and token counts, scripted MCP servers, and the control API. Any credential is accepted.
 *
 * @throws the error of `listen`, such as `EADDRINUSE`
 */
export async function startModelUpstream(options: ModelUpstreamOptions): Promise<RunningServer> {
  const upstream = new Upstream(options)
  // An exception, such as for a script with an illegal header, ends its answer and not the server.
  const { server, port, url, close } = await listenOnLoopback(options.port, (request, response) =>
    upstream.handle(request, response).catch(() => void response.destroy()),
  )
  server.requestTimeout = 0
  server.on('connection', (socket) => socket.setNoDelay(true))
  return { port, url, close }
}

class Upstream {
  readonly #options: ModelUpstreamOptions
  readonly #scripts = new ScriptLibrary()
  readonly #signals = new SignalBoard()
  readonly #log = new RequestLog()
  readonly #mcp = new McpUpstream()
  #totalRequests = 0

  constructor(options: ModelUpstreamOptions) {
    this.#options = options
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const receivedAt = Date.now()
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/'
    const control = path.startsWith('/control/')
    if (!control) this.#count(`${request.method} ${path}`, response, receivedAt)
    const exchange = control ? undefined : new Exchange(response)
    const body = await readBody(request)
    // The client left while it was still sending.
    if (body === undefined) return
    if (exchange === undefined) {
      answerControl(request, response, body, {
        scripts: this.#scripts,
        signals: this.#signals,
        log: this.#log,
        mcp: this.#mcp,
        totalRequests: this.#totalRequests,
      })
      return
    }
    const route = request.method === 'POST' ? generationRoutes[path] : undefined
    const call = route === undefined ? undefined : this.#readCall(request, route, body)
    if (this.#options.record !== false && request.headers[INNER_HEADER] === undefined) {
      const { script, checked } = call ?? {}
      this.#log.add(request, body, exchange, receivedAt, script?.name ?? null, checked?.unknownMembers ?? [])
    }
    if (path.startsWith('/mcp/')) {
      return this.#mcp.handle(path.slice('/mcp/'.length), request, body, response)
    }
    const rawScript = rawScriptOf(path)
    if (rawScript !== null) return this.#answerRaw(rawScript, body, exchange)
    const vendor = vendorOf(path)
    if (vendor) {
      const self = `http://127.0.0.1:${request.socket.localPort}`
      const asked = { incoming: request, response, path: vendor.below, raw: body, body: recordIn(body), self }
      return vendor.answer(asked)
    }
    if (call === undefined) exchange.send(this.#answerOther(request, path))
    else await this.#answerCall(request, exchange, call)
  }

  /** Plays a registered script as it is written, whatever was sent: also for paths and wires that no vendor here has. */
  async #answerRaw(name: string, body: Buffer, exchange: Exchange): Promise<void> {
    const selected: SelectedScript = { name, builtIn: undefined, text: '' }
    await playSteps(this.#scripts.steps(selected, body, 'chat', ''), exchange, this.#signals)
  }

  #readCall(request: IncomingMessage, route: GenerationRoute, raw: Buffer): Call {
    const body = raw.length > route.maximumParsed ? undefined : parseRecord(raw)
    const selected = this.#scripts.select(raw)
    const applies = route.generates || selected?.name.startsWith('error-') === true
    const context: RequestContext = {
      headers: request.headers,
      traits: traitsOf(body?.model),
      acceptUnknown: selected?.builtIn !== undefined && wireScripts.has(selected.name),
    }
    const checked = body === undefined ? { fault: undefined, unknownMembers: [] } : route.check(body, context)
    return { route, raw, body, script: applies ? selected : undefined, context, checked }
  }

  #count(name: string, response: ServerResponse, receivedAt: number): void {
    this.#totalRequests += 1
    response.once('close', () => {
      const ending = response.writableFinished ? response.statusCode : 'cut'
      this.#options.onAnswered?.(`${name} ${ending} ${Date.now() - receivedAt} ms`)
    })
  }

  async #answerCall(request: IncomingMessage, exchange: Exchange, call: Call): Promise<void> {
    const { route, raw, body, context, checked } = call
    const { dialect } = route
    if (dialect === 'messages' && request.headers['anthropic-version'] === undefined) {
      return exchange.send(badRequest(dialect, 'anthropic-version: header is required'))
    }
    if (checked.fault !== undefined) return exchange.send(refusal(dialect, checked.fault))
    const credential = presentedCredential(request.headers, dialect)
    const script = call.script ?? (raw.length > route.maximumParsed ? cannedScript : undefined)
    if (script !== undefined) {
      return playSteps(this.#scripts.steps(script, raw, dialect, credential), exchange, this.#signals)
    }
    exchange.send(
      body === undefined
        ? badRequest(dialect, 'We could not parse the JSON body of your request.')
        : route.answer(body, raw, context),
    )
  }

  #answerOther(request: IncomingMessage, path: string): Reply {
    const dialect: Dialect = path.startsWith('/v1/messages') ? 'messages' : 'chat'
    // The bench compares the gateway's list with it.
    if (path === '/v1/models') return { status: 200, headers: vendorHeaders('chat'), body: MODEL_LIST }
    if (path in generationRoutes) {
      if (dialect === 'messages') return anthropicError(405, 'invalid_request_error', 'Method Not Allowed')
      return openAiError(405, { message: `Not allowed to ${request.method} on ${path}.` })
    }
    if (dialect === 'messages') return anthropicError(404, 'not_found_error', 'Not Found')
    return openAiError(404, { message: `Invalid URL (${request.method} ${path})` })
  }
}

const MODEL_LIST = JSON.stringify({
  object: 'list',
  data: ['scripted-chat', 'scripted-messages'].map((id) => ({
    id,
    object: 'model',
    created: 1_700_000_000,
    owned_by: 'local',
  })),
})

const cannedScript: SelectedScript = { name: 'canned', builtIn: builtInScripts.get('canned'), text: '' }

function parseRecord(raw: Buffer): JsonRecord | undefined {
  try {
    const body: unknown = JSON.parse(raw.toString('utf8'))
    return isRecord(body) ? body : undefined
  } catch {
    return undefined
  }
}

/** The whole body, or undefined when the client left before its end or sent more than 256 MB. */
function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let length = 0
    request.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > maximumBody) request.destroy()
      else chunks.push(chunk)
    })
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)))
    request.on('close', () => resolve(undefined))
    request.on('error', () => resolve(undefined))
  })
}
