// Replaces `@modelcontextprotocol/server/_shims`, for the reason given in `mcp-client.ts`.

export { CfWorkerJsonSchemaValidator as DefaultJsonSchemaValidator } from '@modelcontextprotocol/server/validators/cf-worker'
