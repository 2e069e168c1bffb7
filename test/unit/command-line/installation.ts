import { mkdtempSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runHeadgate } from '../../../scripts/admin/run-headgate.ts'
import { listenOnLoopback } from '../../../scripts/node/loopback-server.ts'

/** The token that the installation takes. */
export const TOKEN = 'hga_the-token-of-the-installation'
export const ORGANIZATION = '11111111-2222-4333-8444-555555555555'

/** A request that an installation received. */
export interface Received {
  method: string
  url: URL
}

type Answer = (request: Received, outgoing: ServerResponse) => unknown

/**
 * An installation of which a test sets the answers, by path below `/api`. What it does not set is one organization, and 404. An answer
 * that is no undefined is sent as JSON.
 */
export async function startInstallation(answers: Record<string, Answer> = {}) {
  const received: Received[] = []
  const { url, close } = await listenOnLoopback(0, async (incoming, outgoing) => {
    const request = { method: incoming.method ?? '', url: new URL(incoming.url ?? '/', 'http://gateway') }
    received.push(request)
    if (incoming.headers.authorization !== `Bearer ${TOKEN}`) {
      return send(outgoing, 401, { message: 'The administration token is wrong.' })
    }
    const path = request.url.pathname.replace('/api', '')
    const answer = answers[path]?.(request, outgoing)
    if (answer !== undefined) return send(outgoing, 200, answer)
    if (outgoing.headersSent || outgoing.destroyed) return
    if (path === '/organizations') return send(outgoing, 200, page([{ id: ORGANIZATION, slug: 'acme' }]))
    send(outgoing, 404, { message: 'Not found.' })
  })
  return { url, close, received }
}

export const page = (data: unknown[]) => ({ data, has_more: false, next_cursor: null })

export function send(
  outgoing: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  outgoing.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

export interface Run {
  code: number
  output: string
  errors: string
}

interface RunOptions {
  environment?: NodeJS.ProcessEnv
  input?: string
  /** What a person answers to each question. */
  answers?: string[]
  interrupted?: AbortSignal
  /** Sees each line of the output. */
  onLine?: (line: string) => void
}

/** A user with an own configuration folder. */
export function newUser() {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-user-'))
  const home = { XDG_CONFIG_HOME: folder, APPDATA: folder }
  const headgate = async (words: string[], options: RunOptions = {}): Promise<Run> => {
    const lines = { output: [] as string[], errors: [] as string[] }
    const answers = [...(options.answers ?? [])]
    const code = await runHeadgate(words, {
      environment: { ...home, ...options.environment },
      readInput: async () => options.input ?? '',
      print: (line) => {
        lines.output.push(line)
        options.onLine?.(line)
      },
      complain: (line) => lines.errors.push(line),
      ...(options.answers && { ask: async () => answers.shift() ?? '' }),
      ...(options.interrupted && { interrupted: options.interrupted }),
    })
    return { code, output: lines.output.join('\n'), errors: lines.errors.join('\n') }
  }
  return {
    headgate,
    file: join(folder, 'headgate', 'profiles.json'),
    remove: () => rmSync(folder, { recursive: true }),
  }
}
