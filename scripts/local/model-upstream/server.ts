import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerMessages, countMessageTokens } from './anthropic-messages.ts'
import { presentedCredential, rejectCredential } from './authentication.ts'
import { builtInScripts } from './built-in-scripts.ts'
import { answerControl } from './control-api.ts'
import { Exchange } from './exchange.ts'
import { isRecord, type JsonRecord, toText } from './json-value.ts'
import { answerModels } from './model-list.ts'
import { answerChat } from './openai-chat.ts'
import { answerCompletion } from './openai-completions.ts'
import type { Dialect, Reply } from './reply.ts'
import { RequestLog } from './request-log.ts'
import { ScriptLibrary, type SelectedScript } from './script-library.ts'
import { playSteps } from './script-player.ts'
import { SignalBoard } from './signal-board.ts'
import { anthropicError, badRequest, openAiError } from './vendor-errors.ts'

export interface ModelUpstreamOptions {
  /** Port on 127.0.0.1; 0 takes a free one. */
  port: number
  /** The key callers must present; without it any or none is accepted. */
  apiKey?: string | undefined
  /** Whether requests are recorded for `GET /control/requests`; true unless set. */
  record?: boolean | undefined
  /** Called after each answered request with one line that holds no header and no body. */
  onAnswered?: ((line: string) => void) | undefined
}

export interface ModelUpstream {
  port: number
  /** `http://127.0.0.1:PORT`, without `/v1`. */
  url: string
  /** Cuts open connections and frees the port. */
  close(): Promise<void>
}

const maximumBody = 256 * 1024 * 1024

interface GenerationRoute {
  dialect: Dialect
  /** Bodies above this many bytes get the prebuilt answer of the script `canned`, without being parsed. */
  maximumParsed: number
  answer: (body: JsonRecord, raw: Buffer, headers: IncomingHttpHeaders) => Reply
}

const generationRoutes: Record<string, GenerationRoute> = {
  '/v1/chat/completions': { dialect: 'chat', maximumParsed: 1024 * 1024, answer: answerChat },
  '/v1/completions': { dialect: 'completions', maximumParsed: 1024 * 1024, answer: answerCompletion },
  '/v1/messages': {
    dialect: 'messages',
    maximumParsed: 1024 * 1024,
    answer: (body, raw, headers) =>
      answerMessages(body, raw.includes('"cache_control"'), toText(headers['anthropic-beta'])),
  },
  '/v1/messages/count_tokens': {
    dialect: 'messages',
    maximumParsed: maximumBody,
    answer: countMessageTokens,
  },
}

/**
 * Starts the scripted model upstream on 127.0.0.1: OpenAI chat completions, completions and models, Anthropic messages
 * and token counts, and the control API. Rejects when the port is taken.
 */
export async function startModelUpstream(options: ModelUpstreamOptions): Promise<ModelUpstream> {
  const upstream = new Upstream(options)
  const server = createServer((request, response) => {
    // A fault here (a script with an illegal header, say) must end this answer only, not the server.
    upstream.handle(request, response).catch(() => response.destroy())
  })
  // Callers pool connections; closing an idle one early would race with their next request.
  server.keepAliveTimeout = 75_000
  server.requestTimeout = 0
  server.on('connection', (socket) => {
    socket.setNoDelay(true)
    upstream.connectionOpened()
    socket.once('close', () => upstream.connectionClosed())
  })
  await listen(server, options.port)
  const { port } = server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}`, close: () => close(server) }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

class Upstream {
  readonly #options: ModelUpstreamOptions
  readonly #scripts = new ScriptLibrary()
  readonly #signals = new SignalBoard()
  readonly #log = new RequestLog()
  #openConnections = 0
  #openRequests = 0
  #totalRequests = 0

  constructor(options: ModelUpstreamOptions) {
    this.#options = options
  }

  connectionOpened(): void {
    this.#openConnections += 1
  }

  connectionClosed(): void {
    this.#openConnections -= 1
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const receivedAt = Date.now()
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/'
    const control = path.startsWith('/control/')
    if (!control) this.#count(`${request.method} ${path}`, response, receivedAt)
    const exchange = control ? undefined : new Exchange(response)
    const body = await readBody(request)
    // The client left while it was still sending: there is nobody to answer.
    if (body === undefined) return
    if (exchange === undefined) {
      answerControl(request, response, body, {
        scripts: this.#scripts,
        signals: this.#signals,
        log: this.#log,
        stats: () => this.#stats(),
      })
      return
    }
    const route = request.method === 'POST' ? generationRoutes[path] : undefined
    const selected = route === undefined ? undefined : this.#selectScript(path, body)
    if (this.#options.record !== false) {
      this.#log.add(request, body, exchange, receivedAt, selected?.name ?? null)
    }
    if (route === undefined) exchange.send(this.#answerOther(request, path))
    else await this.#answerGeneration(request, body, exchange, route, selected)
  }

  #count(name: string, response: ServerResponse, receivedAt: number): void {
    this.#totalRequests += 1
    this.#openRequests += 1
    response.once('close', () => {
      this.#openRequests -= 1
      const ending = response.writableFinished ? response.statusCode : 'cut'
      this.#options.onAnswered?.(`${name} ${ending} ${Date.now() - receivedAt} ms`)
    })
  }

  #stats(): unknown {
    return {
      openConnections: this.#openConnections,
      openRequests: this.#openRequests,
      totalRequests: this.#totalRequests,
    }
  }

  /** Of the scripts only the built-in errors apply to token counts, which clients send beside the real call. */
  #selectScript(path: string, body: Buffer): SelectedScript | undefined {
    const selected = this.#scripts.select(body)
    if (path !== '/v1/messages/count_tokens') return selected
    return selected?.builtIn !== undefined && selected.name.startsWith('error-') ? selected : undefined
  }

  async #answerGeneration(
    request: IncomingMessage,
    body: Buffer,
    exchange: Exchange,
    route: GenerationRoute,
    selected: SelectedScript | undefined,
  ): Promise<void> {
    const { dialect } = route
    const rejection = rejectCredential(request.headers, dialect, this.#options.apiKey)
    if (rejection !== undefined) return exchange.send(rejection)
    if (dialect === 'messages' && request.headers['anthropic-version'] === undefined) {
      return exchange.send(badRequest(dialect, 'anthropic-version: header is required'))
    }
    const credential = presentedCredential(request.headers, dialect)?.value ?? ''
    const script = selected ?? (body.length > route.maximumParsed ? cannedScript : undefined)
    if (script !== undefined) {
      return playSteps(this.#scripts.steps(script, body, dialect, credential), exchange, this.#signals)
    }
    exchange.send(answerParsed(body, route, request.headers))
  }

  #answerOther(request: IncomingMessage, path: string): Reply {
    const dialect: Dialect = path.startsWith('/v1/messages') ? 'messages' : 'chat'
    if (path === '/v1/models' || path.startsWith('/v1/models/')) {
      const fromAnthropic = request.headers['anthropic-version'] !== undefined
      const rejection = rejectCredential(
        request.headers,
        fromAnthropic ? 'messages' : 'chat',
        this.#options.apiKey,
      )
      const id = path === '/v1/models' ? undefined : decodePath(path.slice('/v1/models/'.length))
      return rejection ?? answerModels(id, fromAnthropic)
    }
    if (path in generationRoutes) {
      if (dialect === 'messages') return anthropicError(405, 'invalid_request_error', 'Method Not Allowed')
      return openAiError(405, { message: `Not allowed to ${request.method} on ${path}.` })
    }
    if (dialect === 'messages') return anthropicError(404, 'not_found_error', 'Not Found')
    return openAiError(404, { message: `Invalid URL (${request.method} ${path})` })
  }
}

function decodePath(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

const cannedScript: SelectedScript = { name: 'canned', builtIn: builtInScripts.get('canned'), text: '' }

function answerParsed(raw: Buffer, route: GenerationRoute, headers: IncomingHttpHeaders): Reply {
  let body: unknown
  try {
    body = JSON.parse(raw.toString('utf8'))
  } catch {
    body = undefined
  }
  if (isRecord(body)) return route.answer(body, raw, headers)
  return badRequest(route.dialect, 'We could not parse the JSON body of your request.')
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
