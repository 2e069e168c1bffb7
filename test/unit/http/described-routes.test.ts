import { describe, expect, it } from 'vitest'
import { managementDocument } from '../../../scripts/openapi/management-document.ts'
import { publicDocument } from '../../../scripts/openapi/public-document.ts'
import { app } from '../../../src/app.ts'

/** Routes that are no part of an API: pages for people, returns of browsers, deliveries of QStash, the documents themselves, a probe of coding agents. */
const NOT_DESCRIBED = [
  /^\w+ \/connect\//,
  /^GET \/api\/sign-in\/oidc\/callback$/,
  /^POST \/internal\//,
  /^GET \/(api\/)?openapi\.json$/,
  /^(GET|HEAD) \/api\/hello$/,
  /^GET \/docs\/api/,
  /^GET \/console/,
]

/** A path in the form of a document: `:name`, and a pattern after it, in braces. */
const documentPath = (path: string) => path.replaceAll(/:(\w+)(\{[^}]*\})?/g, '{$1}')

const routes = new Set(
  app.routes
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method} ${documentPath(path)}`)
    .filter((route) => !NOT_DESCRIBED.some((pattern) => pattern.test(route))),
)

const described = new Set(
  [publicDocument(), managementDocument()].flatMap((document) =>
    Object.entries((document as { paths: Record<string, object> }).paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    ),
  ),
)

describe('the OpenAPI documents', () => {
  it('describe every route', () => {
    expect([...routes].filter((route) => !described.has(route))).toEqual([])
  })

  it('describe no other route', () => {
    expect([...described].filter((route) => !routes.has(route))).toEqual([])
  })
})
