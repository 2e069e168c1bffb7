import type { IncomingMessage, ServerResponse } from 'node:http'
import { readBody, sendJson } from '../../node/loopback-server.ts'
import { ticketDocument } from './ticket-document.ts'

interface Ticket {
  id: string
  title: string
  text: string
  status: string
  assignee: string | null
}

const LARGEST_BODY = 1024 * 1024

/** A small API over tickets in memory, with an OpenAPI document under `/openapi.json`. */
export class TicketService {
  readonly #tickets = new Map<string, Ticket>()
  readonly #key: string
  #next = 1

  /** @param key that requests must have in the header `x-api-key`. */
  constructor(key: string) {
    this.#key = key
    this.#create({ title: 'The printer is out of paper', text: 'Second floor.' })
    this.#create({ title: 'Order chairs', text: 'Six of them.' })
  }

  /** @param path below the service. @param url of the service, for its document. */
  async handle(path: string, url: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(path, 'http://localhost')
    if (pathname === '/openapi.json') return sendJson(response, 200, ticketDocument(url))
    if (request.headers['x-api-key'] !== this.#key) {
      return sendJson(response, 401, { message: 'The key is missing or wrong.' })
    }
    const text = (await readBody(request, LARGEST_BODY)).toString('utf8')
    const [, collection, id] = pathname.split('/')
    if (collection !== 'tickets') return sendJson(response, 404, { message: 'Not found.' })
    const body = text === '' ? {} : JSON.parse(text)
    const [status, answer] =
      id === undefined
        ? this.#ofAll(request.method, searchParams, body)
        : this.#ofOne(request.method, decodeURIComponent(id), body)
    sendJson(response, status, answer)
  }

  #ofAll(method: string | undefined, query: URLSearchParams, body: Partial<Ticket>): [number, unknown] {
    if (method === 'POST') {
      if (typeof body.title !== 'string') return [422, { message: 'title: is required' }]
      return [201, this.#create(body)]
    }
    if (method !== 'GET') return [405, { message: 'Not allowed.' }]
    const wanted = query.getAll('status')
    const tickets = [...this.#tickets.values()].filter(
      ({ status }) => wanted.length === 0 || wanted.includes(status),
    )
    return [200, { tickets: tickets.slice(0, Number(query.get('limit') ?? 20)), total: tickets.length }]
  }

  #ofOne(method: string | undefined, id: string, body: Partial<Ticket>): [number, unknown] {
    const ticket = this.#tickets.get(id)
    if (ticket === undefined) return [404, { message: `Ticket ${id} not found.` }]
    if (method === 'PATCH') Object.assign(ticket, { ...body, id })
    if (method !== 'DELETE') return [200, ticket]
    this.#tickets.delete(id)
    return [204, undefined]
  }

  #create({ title = '', text = '' }: Partial<Ticket>): Ticket {
    const ticket = { id: String(this.#next), title, text, status: 'open', assignee: null }
    this.#next += 1
    this.#tickets.set(ticket.id, ticket)
    return ticket
  }
}
