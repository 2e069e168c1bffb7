// Replaces `@modelcontextprotocol/client/_shims` (wrangler.toml). The library's file for Workers builds all schemas of
// the protocol when the script starts. Without that they are built for the first call of an integration.

export { CfWorkerJsonSchemaValidator as DefaultJsonSchemaValidator } from '@modelcontextprotocol/client/validators/cf-worker'

/** A `TypeError` of fetch is never about CORS here. */
export const CORS_IS_POSSIBLE = false
