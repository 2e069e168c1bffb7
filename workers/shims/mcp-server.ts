// In place of `@modelcontextprotocol/server/_shims`, as `mcp-client.ts`.

export { CfWorkerJsonSchemaValidator as DefaultJsonSchemaValidator } from '@modelcontextprotocol/server/validators/cf-worker'
