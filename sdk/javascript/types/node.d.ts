// What the SDK uses of Node, for checking types without Node's own declarations.
declare module "node:fs/promises" {
  export interface FileHandle {
    appendFile(data: string): Promise<void>;
    chmod(mode: number): Promise<void>;
    datasync(): Promise<void>;
    sync(): Promise<void>;
    truncate(length: number): Promise<void>;
    close(): Promise<void>;
  }
  export function open(path: string, flags: string, mode?: number): Promise<FileHandle>;
  export function readFile(path: string, encoding: "utf8"): Promise<string>;
  export function writeFile(path: string, data: string, options: { flag: string }): Promise<void>;
  export function rename(from: string, to: string): Promise<void>;
  export function rm(path: string, options: { force: boolean }): Promise<void>;
}

declare module "node:path" {
  export function dirname(path: string): string;
}

declare module "node:crypto" {
  export function randomBytes(size: number): Buffer;
  export function createHash(name: string): {
    update(text: string): { digest(encoding: "base64"): string };
  };
}

declare module "node:net" {
  export interface Socket {
    readonly writable: boolean;
    readonly writableLength: number;
    setNoDelay(on: boolean): void;
    on(event: "data", listener: (data: Buffer) => void): void;
    on(event: "error", listener: (error: Error) => void): void;
    on(event: "end" | "close", listener: () => void): void;
    write(data: Uint8Array): boolean;
    end(): void;
    destroy(): void;
  }
}

declare module "node:http" {
  import { Socket } from "node:net";
  interface Response {
    statusCode?: number;
    headers: Record<string, string | undefined>;
    resume(): void;
  }
  export interface ClientRequest {
    on(event: "error", listener: (error: Error) => void): void;
    on(event: "response", listener: (response: Response) => void): void;
    on(event: "upgrade", listener: (response: Response, socket: Socket, head: Buffer) => void): void;
    end(): void;
    destroy(): void;
  }
  function request(url: string, options: { headers: Record<string, string> }): ClientRequest;
  const http: { request: typeof request };
  export default http;
}

declare module "node:https" {
  import http from "node:http";
  const https: typeof http;
  export default https;
}

interface Buffer extends Uint8Array {
  subarray(start?: number, end?: number): Buffer;
  toString(encoding?: "base64"): string;
  readUInt16BE(offset: number): number;
  readBigUInt64BE(offset: number): bigint;
  writeUInt16BE(value: number, offset: number): number;
  writeBigUInt64BE(value: bigint, offset: number): number;
}
declare const Buffer: {
  alloc(size: number): Buffer;
  concat(parts: Buffer[]): Buffer;
  from(data: Uint8Array): Buffer;
  from(data: string, encoding: "base64"): Buffer;
  byteLength(text: string): number;
};
declare const process: { pid: number; kill(pid: number, signal: number): void };
