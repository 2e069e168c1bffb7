import * as z from 'zod'

/** A fault of a server, in place of the answer to one method. */
const fault = z.discriminatedUnion('kind', [
  /** Any answer: a status, headers, and a body as text, after which it ends, closes the connection, or leaves it open. */
  z.strictObject({
    kind: z.literal('answer'),
    status: z.number().int().default(200),
    headers: z.record(z.string(), z.string()).default({}),
    body: z.string().default(''),
    ending: z.enum(['end', 'destroy', 'open']).default('end'),
  }),
  /** Never answers. */
  z.strictObject({ kind: z.literal('hang') }),
  /** Closes the connection; after the headers and a part of the body if `late`. */
  z.strictObject({ kind: z.literal('destroy'), late: z.boolean().default(false) }),
  /** Server-sent events without the answer and without an end: comments, or messages of the server. */
  z.strictObject({ kind: z.literal('endless'), event: z.enum(['comment', 'notification']) }),
  /** Answers with this many megabytes of zeros, compressed by gzip. */
  z.strictObject({
    kind: z.literal('gzip'),
    megabytes: z.number().int().min(1).max(1_000),
    type: z.enum(['application/json', 'text/event-stream']).default('application/json'),
  }),
  /** Answers as it should after so many milliseconds. */
  z.strictObject({ kind: z.literal('slow'), milliseconds: z.number().int().min(0) }),
])

/** A server of the Model Context Protocol, as tests define it. */
export const scriptedServer = z.strictObject({
  era: z.enum(['modern', 'legacy']).default('modern'),
  /** Whether a legacy server gives out sessions, and refuses requests without one. */
  sessions: z.boolean().default(true),
  /** How it answers requests. */
  transport: z.enum(['json', 'sse']).default('json'),
  tools: z.array(z.unknown()).default([]),
  /** More tools, `generated_0` and so on. */
  generated: z.number().int().min(0).max(50_000).default(0),
  pageSize: z.number().int().min(1).default(1_000),
  /** Results of tools by name; a tool without one repeats its arguments. */
  results: z.record(z.string(), z.unknown()).default({}),
  /** A header that requests must have, else 401. */
  requires: z.strictObject({ header: z.string(), value: z.string() }).optional(),
  /** Faults by method, such as `tools/list`; `*` is every method. */
  faults: z.record(z.string(), fault).default({}),
})

export type ScriptedServer = z.infer<typeof scriptedServer>
export type ServerFault = z.infer<typeof fault>

/** A request that a server received. */
export interface ServerRequest {
  method: string
  params: unknown
  headers: Record<string, string | string[] | undefined>
}
