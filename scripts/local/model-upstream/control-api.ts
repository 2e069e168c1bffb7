import type { IncomingMessage, ServerResponse } from 'node:http'
import type { McpUpstream } from '../mcp-upstream/mcp-upstream.ts'
import type { RequestLog } from './request-log.ts'
import type { ScriptLibrary } from './script-library.ts'
import { scriptSchema } from './script-steps.ts'
import type { SignalBoard } from './signal-board.ts'

/** Names must survive being a word in a message and a segment of a path, unescaped. */
const namePattern = /^[\w.-]*[\w-]$/
const namingRule = 'a name has letters, digits, dot, dash and underscore, and does not end with a dot'

export interface ControlledParts {
  scripts: ScriptLibrary
  signals: SignalBoard
  log: RequestLog
  mcp: McpUpstream
  totalRequests: number
}

/**
 * Answers `/control/…`: scripts, signals, the request log and counters. It takes no key, since the server listens on
 * loopback only. Everything it answers is JSON.
 */
export function answerControl(
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
  parts: ControlledParts,
): void {
  const url = new URL(request.url ?? '/', 'http://localhost')
  const [, , subject = '', ...rest] = url.pathname.split('/')
  const [status, answer] = decide(`${request.method} ${subject}`, rest.join('/'), url, body, parts)
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(answer))
}

type Answer = [status: number, body: unknown]

function decide(route: string, name: string, url: URL, body: Buffer, parts: ControlledParts): Answer {
  const { scripts, signals, log } = parts
  const [method, subject] = route.split(' ')
  if (subject === 'mcp') return parts.mcp.control(method, name, body)
  switch (route) {
    case 'PUT scripts':
      return registerScript(name, body, scripts)
    case 'GET scripts':
      return [200, scripts.names()]
    case 'DELETE scripts':
      return scripts.remove(name) ? [200, {}] : [404, { error: `no script ${name}` }]
    case 'POST signals':
      if (!namePattern.test(name)) return [400, { error: namingRule }]
      return [200, { released: signals.release(name) }]
    case 'GET signals':
      return [200, { waiting: signals.counts() }]
    case 'GET requests': {
      const after = Number(url.searchParams.get('after') ?? 0)
      const requests = log.list(Number.isNaN(after) ? 0 : after, url.searchParams.get('containing') ?? '')
      return [200, { requests, last: log.lastSequence }]
    }
    case 'DELETE requests':
      log.clear()
      return [200, { last: log.lastSequence }]
    case 'GET stats':
      return [200, { totalRequests: parts.totalRequests }]
    default:
      return [404, { error: `no control route ${route}` }]
  }
}

/** The value, or undefined when it is not JSON. */
function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

function registerScript(name: string, body: Buffer, scripts: ScriptLibrary): Answer {
  if (!namePattern.test(name)) return [400, { error: namingRule }]
  const value = parseJson(body)
  if (value === undefined) return [400, { error: 'the script is not JSON' }]
  const parsed = scriptSchema.safeParse(value)
  if (!parsed.success) return [400, { error: 'not a script', issues: parsed.error.issues }]
  scripts.register(name, parsed.data)
  return [200, { name }]
}
